"""The page of a verb: what it answers, an example with what it prints, options, frames, errors, cost, what it skips."""

import argparse
import re

import nbkit
from docs.generator.examples import Example, shown
from docs.generator.markdown import block, code, listed, page, table
from docs.generator.signatures import signature
from docs.generator.tables import page_of, tables
from nbkit.magics.cell_magic import CellMagic
from nbkit.magics.line_magic import line_parser
from nbkit.verbs.options.docstrings import read
from nbkit.verbs.verb import LineMagic

SECTIONS = ("What it costs", "What it skips")


def recorder_page(magic: CellMagic, example: Example) -> str:
    """Writes the page of a verb that records: a context manager and a cell magic."""
    return _page(
        magic.name,
        example,
        ("Context manager", f"%%{magic.name}", magic.parser),
        "An error of the code inside leaves the block as it is; the trace so far is kept, marked incomplete.",
    )


def function_page(name: str, magic: LineMagic, example: Example) -> str:
    """Writes the page of a verb that is a function and a line magic."""
    return _page(name, example, ("Function", f"%{name}", line_parser(name, magic)))


def _page(name: str, example: Example, face: tuple[str, str, argparse.ArgumentParser], about_errors: str = "") -> str:
    kind, magic, parser = face
    doc = read(getattr(nbkit, name))
    answers, notes = _notes(example)
    frames = _frames(example)
    return page(
        f"# {name}",
        answers,
        "## Example",
        shown(example),
        f"## {kind}",
        block(f"nbkit.{signature(getattr(nbkit, name), name)}", "python"),
        f"{doc.head}\n\n{doc.body}",
        listed(doc.args),
        f"## Magic: `{magic}`",
        (parser.description or "").strip(),
        table(["option", "meaning"], [_option(action) for action in parser._actions]),
        *(["## Frames it fills", frames] if frames else []),
        "## Errors",
        listed(doc.raises, "../functions.md"),
        about_errors,
        notes,
    )


def _frames(example: Example) -> str:
    filled = [of for of in tables() if of.name in example.frames]
    return "\n".join(f"- [{of.name}](../{page_of(of)}): one row per {of.row}" for of in filled)


def _option(action: argparse.Action) -> list[str]:
    choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else None
    value = "" if action.nargs == 0 else f" {action.metavar or choices}"
    names = [code(f"{option}{value}") for option in action.option_strings] or [code(str(action.metavar or action.dest))]
    return [", ".join(names), action.help or ""]


def _notes(example: Example) -> tuple[str, str]:
    """Splits the verb's text at its first heading; raises LookupError for a missing heading."""
    headings = re.findall(r"^## (.*)", example.notes, re.MULTILINE)
    if missing := [heading for heading in SECTIONS if heading not in headings]:
        raise LookupError(f"docs/sources/texts/{example.name}.md has no heading '## {missing[0]}'.")
    start = example.notes.index("## ")
    return example.notes[:start], example.notes[start:]
