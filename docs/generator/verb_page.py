"""The page of a verb: what it answers, an example with what it prints, options, frames, errors, cost, what it skips."""

import argparse
import re

import nbkit
from docs.generator.examples import Example, shown
from docs.generator.markdown import block, code, listed, page, table
from docs.generator.signatures import signature
from docs.generator.tables import tables
from nbkit.magics.cell_magic import CellMagic
from nbkit.verbs.options.docstrings import read

SECTIONS = ("What it costs", "What it skips")


def verb_page(magic: CellMagic, example: Example) -> str:
    """The page as Markdown."""
    name = magic.name
    doc = read(getattr(nbkit, name))
    answers, notes = _notes(example)
    return page(
        f"# {name}",
        answers,
        "## Example",
        shown(example),
        "## Context manager",
        block(f"nbkit.{signature(getattr(nbkit, name), name)}", "python"),
        f"{doc.head}\n\n{doc.body}",
        listed(doc.args),
        f"## Magic: `%%{name}`",
        (magic.parser.description or "").strip(),
        table(["option", "meaning"], [_option(action) for action in magic.parser._actions]),
        "## Frames it fills",
        _frames(example),
        "## Errors",
        listed(doc.raises, "../functions.md"),
        "An error of the code inside leaves the block as it is; the trace so far is kept, marked incomplete.",
        notes,
    )


def _frames(example: Example) -> str:
    filled = [of for of in tables() if of.name in example.frames]
    return "\n".join(f"- [{of.name}](../frames/{of.name}.md): one row per {of.row}" for of in filled)


def _option(action: argparse.Action) -> list[str]:
    value = "" if action.nargs == 0 else f" {action.metavar}"
    return [", ".join(code(f"{option}{value}") for option in action.option_strings), action.help or ""]


def _notes(example: Example) -> tuple[str, str]:
    """What stands before the first heading of the verb's text, and the rest; LookupError for a missing heading."""
    headings = re.findall(r"^## (.*)", example.notes, re.MULTILINE)
    if missing := [heading for heading in SECTIONS if heading not in headings]:
        raise LookupError(f"docs/sources/{example.name}.md has no heading '## {missing[0]}'.")
    start = example.notes.index("## ")
    return example.notes[:start], example.notes[start:]
