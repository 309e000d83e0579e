"""read_paddle_program: a Paddle program as a trace with one graph per block."""

from pathlib import Path

from nbkit.readers.paddle.program_graphs import ProgramGraphs
from nbkit.readers.paddle.skipped_lines import Unread
from nbkit.readers.paddle.text.forms import RanksReader, begins
from nbkit.readers.text_file import TextLines, text_lines
from nbkit.trace.trace import Trace


def looks_like(head: str) -> bool:
    """Whether the first few hundred lines of a file show a Paddle program of any form."""
    return any(begins(line) for line in head.splitlines())


def read_paddle_program(path: Path) -> Trace:
    """The graphs of every program in the file: frames nodes, edges and graph_tensors, one graph per block.

    What cannot be read is a row of meta["unread"]; a file without any program has no rows. Raises TraceError if the
    file itself cannot be read.
    """
    lines, unread, graphs = text_lines(path), Unread(), ProgramGraphs()
    reader = RanksReader(unread, graphs.add)
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
        "unread": unread.rows,
        "notes": _notes(lines, unread),
        "paddle": graphs.facts(),
    }
    return Trace(graphs.rows.frames(), meta)


def _notes(lines: TextLines, unread: Unread) -> list[str]:
    """What was wrong with the file as a whole."""
    notes = []
    if lines.undecodable_bytes:
        notes.append(f"{lines.undecodable_bytes:,} bytes are not of the file's encoding; they are shown as U+FFFD.")
    if lines.damage:
        notes.append(f"The file is not whole: {lines.damage}.")
    if unread.count > len(unread.rows):
        notes.append(f"{unread.count:,} lines could not be read; the first {len(unread.rows):,} are listed.")
    return notes
