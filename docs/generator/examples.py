"""The examples in docs/sources/examples: run one after the other, with what each prints and the frames it fills."""

import linecache
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from docs.generator.markdown import block, page
from docs.generator.tables import tables
from nbkit.trace.trace import Trace


@dataclass(frozen=True)
class Example:
    """One example: its name, its code, what it prints, and the frames it filled by name."""

    name: str
    source: str
    printed: str
    frames: dict[str, pd.DataFrame]
    notes: str


def run_all(folder: Path, verbs: list[str]) -> dict[str, Example]:
    """Returns examples of the verbs in their order, then the others; LookupError names the file that a verb lacks."""
    for verb in verbs:
        for name in (f"examples/{verb}.py", f"texts/{verb}.md"):
            if not (folder / name).is_file():
                raise LookupError(f"The verb {verb!r} has no page yet: write docs/sources/{name}.")
    examples = folder / "examples"
    others = sorted(path.stem for path in examples.glob("*.py") if path.stem not in verbs)
    return {name: run(examples / f"{name}.py") for name in [*verbs, *others]}


def run(path: Path) -> Example:
    """Returns the example at `path`, run in an empty folder."""
    source = path.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    notes = path.parents[1] / "texts" / f"{path.stem}.md"
    with TemporaryDirectory() as scratch, chdir(scratch), redirect_stdout(StringIO()) as printed:
        # A short name, so that the source column does not depend on the machine.
        # Where Python, and the frame `lines`, look for the text of a line.
        linecache.cache["example.py"] = (len(source), None, source.splitlines(keepends=True), "example.py")
        exec(compile(source, "example.py", "exec"), names)
    text = notes.read_text(encoding="utf-8") if notes.is_file() else ""
    return Example(path.stem, source, printed.getvalue(), _frames(names, path.stem), text)


def shown(example: Example) -> str:
    """Returns its code and what it prints, as Markdown."""
    printed = f"It prints:\n\n{block(example.printed, 'text')}" if example.printed else ""
    return page(block(example.source, "python"), printed)


def _frames(names: dict[str, Any], verb: str) -> dict[str, pd.DataFrame]:
    """Returns the frames of the verb's traces, and frames of a table by themselves that are whole."""
    frames: dict[str, pd.DataFrame] = {}
    for value in names.values():
        if isinstance(value, Trace) and value.meta.get("verb") == verb:
            frames = value.frames | frames
        elif isinstance(value, pd.DataFrame) and value.index.equals(pd.RangeIndex(len(value))):
            frames = {table.name: value for table in tables() if list(value.columns) == table.names} | frames
    return frames
