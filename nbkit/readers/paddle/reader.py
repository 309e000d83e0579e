"""Reads a Paddle program as a trace with one graph per block."""

from pathlib import Path

from nbkit.readers.paddle.program_graphs import ProgramGraphs
from nbkit.readers.paddle.text.forms import RanksReader, begins
from nbkit.readers.rank_tags import RankTags
from nbkit.readers.reader import Reader
from nbkit.readers.skipped_lines import SkippedLines
from nbkit.readers.text_file import TextLines, text_lines
from nbkit.trace.trace import Trace


def looks_like(head: str) -> bool:
    """Returns whether the first few hundred lines of a file show a Paddle program of any form."""
    return any(begins(line) for line in head.splitlines())


def read_paddle_program(path: Path) -> Trace:
    """Returns the graphs of every program in the file: frames nodes, edges and graph_tensors, one graph per block.

    Lines that cannot be read are rows of meta["skipped_lines"]; a file without any program has no rows. Raises
    TraceError if the file itself cannot be read.
    """
    lines, skipped, graphs = text_lines(path), SkippedLines(), ProgramGraphs()
    reader = RanksReader(RankTags(text_lines(path)), skipped, graphs.add)
    for number, line in enumerate(lines, 1):
        reader.line(number, line)
    reader.close()
    meta = {
        "verb": "opgraph",
        "name": path.name,
        "created": None,
        "source": f"Paddle program: {graphs.form or 'none found'}",
        "complete": graphs.is_whole and not lines.damage,
        "error": None,
        "skipped_lines": skipped.rows,
        "notes": [*_notes(lines, skipped), *_rounding(graphs), *graphs.rows.notes()],
        "paddle": graphs.facts(),
    }
    return Trace(graphs.rows.frames(), meta)


def _rounding(graphs: ProgramGraphs) -> list[str]:
    if graphs.rounded is None or not str(graphs.form).startswith("PIR"):
        return []
    return [f"Paddle prints constants with six digits: {graphs.rounded:g} and others may be rounded."]


def _notes(lines: TextLines, skipped: SkippedLines) -> list[str]:
    """Returns what was wrong with the file as a whole."""
    notes = []
    if lines.undecodable_bytes:
        notes.append(f"{lines.undecodable_bytes:,} bytes are not of the file's encoding; they are shown as U+FFFD.")
    if lines.damage:
        notes.append(f"The file is not whole: {lines.damage}.")
    if skipped.count > len(skipped.rows):
        notes.append(f"{skipped.count:,} lines could not be read; the first {len(skipped.rows):,} are listed.")
    return notes


PADDLE = Reader("a Paddle program", read_paddle_program, of_text=looks_like)
