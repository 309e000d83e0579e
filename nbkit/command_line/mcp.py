"""Runs `python -m nbkit mcp`: traces for AI assistants, over the Model Context Protocol."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from nbkit.compat.installed import own_version
from nbkit.verbs.options.generated import OptionHolder
from nbkit.verbs.options.parser import absolute_path
from nbkit.verbs.verb import PROGRAM, Command, Outcome


def _add_options(holder: OptionHolder) -> None:
    root = "only traces below this folder can be read (default: the current folder)"
    holder.add_argument("--root", metavar="DIR", type=absolute_path, default=Path.cwd(), help=root)


def _run(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    from nbkit.mcp.folder import Folder
    from nbkit.mcp.server import serve  # what the other subcommands do without

    folder = Folder(options.root)
    progress(f"serving the traces below {folder.root} on stdin and stdout; an assistant starts this by itself")
    serve(folder, own_version())
    return Outcome(None)


MCP = Command(
    "mcp",
    "let an AI assistant read traces, over the Model Context Protocol",
    "mcp --root runs",
    f"""\
Serve saved traces to an AI assistant over the Model Context Protocol, on stdin and stdout. The assistant starts it:

    {PROGRAM} mcp
        traces below the current folder
    {PROGRAM} mcp --root runs
        traces below the folder runs, and nothing else
    {PROGRAM} mcp --root .  </dev/null
        ends at once: a test of whether it is installed

It reads, and neither writes nor runs anything. It needs the package mcp: pip install "nbkit-torch[mcp]".""",
    _add_options,
    _run,
)
