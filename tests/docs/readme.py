"""README.md and docs/guides/terminal.md as a newcomer follows them: commands and cells of a section, in order."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
INTRO, PATH, TERMINAL = "nbkit", "Five minutes with your own model", "From a terminal"


def section(title: str) -> str:
    """What stands below the heading of that title, up to the next heading; raises LookupError if there is none."""
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/guides/terminal.md"))
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^##? |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise LookupError(f"There is no section {title!r} in README.md or docs/guides/terminal.md.")
    return found[1]


def blocks(title: str, language: str) -> list[str]:
    """The blocks of that language in a section, the empty one for commands."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", section(title), re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def commands(title: str) -> list[str]:
    """The commands of a section, without what is said of them."""
    lines = [line for block in blocks(title, "") for line in block.splitlines()]
    return [line.partition("  #")[0].strip() for line in lines]


def cells() -> list[str]:
    """The cells of the path; the first is the reader's own, up to the sentence on scripts."""
    found = blocks(PATH, "python")
    return found[: next(i for i, block in enumerate(found) if block.startswith("import "))]
