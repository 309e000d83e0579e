"""The page of the command line: its subcommands with an example each."""

from docs.generator.markdown import block, page
from nbkit.command_line.main import COMMANDS
from nbkit.verbs.verb import PROGRAM


def command_line_page() -> str:
    """Returns the page as Markdown."""
    commands = [
        page(
            f"## {PROGRAM} {one.name}",
            f"{one.summary[0].upper()}{one.summary[1:]}.",
            block(f"{PROGRAM} {one.example}", "sh"),
        )
        for one in COMMANDS.values()
    ]
    return page(
        "# The command line",
        f"For scripts and terminals, without a notebook: `{PROGRAM} COMMAND --help` has all options and examples.",
        *commands,
    )
