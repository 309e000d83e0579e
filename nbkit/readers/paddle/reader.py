"""Reads a Paddle program as a trace with one graph per block."""

from pathlib import Path
from typing import Any

from nbkit.graphs.rows import GraphRows
from nbkit.readers.paddle.communication import Meshes, collective, is_communication, sharding
from nbkit.readers.paddle.graph import BlockGraph
from nbkit.readers.paddle.records import Block, Program
from nbkit.readers.paddle.text.forms import RanksReader, begins
from nbkit.readers.rank_tags import RankTags
from nbkit.readers.reader import Reader
from nbkit.readers.skipped_lines import SkippedLines
from nbkit.readers.text_file import TextLines, text_lines
from nbkit.trace.trace import Trace

# Paddle prints floats with six digits.
DIGITS = 6


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


class ProgramGraphs:
    """Holds rows of the programs that were added; `form` is that of the first, `is_whole` of them all."""

    def __init__(self) -> None:
        self.rows = GraphRows()
        self.form: str | None = None
        self.is_whole = False
        self.rounded: float | None = None  # a constant that seems to be
        self._number = 0
        self._meshes = Meshes()
        self._blocks: list[dict[str, Any]] = []
        self._communication: list[dict[str, Any]] = []
        self._sharding: dict[str, Any] = {}

    def add(self, program: Program) -> None:
        """Adds the blocks of the next program; its graphs are told from those of others by its number."""
        self._number += 1
        self.is_whole = program.is_whole and (self.is_whole or self._number == 1)
        self.form = self.form or program.form
        prefix = f"program {self._number} " if self._number > 1 else ""
        for index in sorted(program.blocks):
            self._add(program, program.blocks[index], prefix)
        self._meshes.add(program.blocks.values())
        self._sharding = self._sharding or sharding(program.blocks.values())

    def _add(self, program: Program, block: Block, prefix: str) -> None:
        graph = BlockGraph(self.rows, program, block, prefix)
        graph.add()
        links = {name: getattr(block, name) for name in ("parent", "forward", "backward")}
        counts = {"operations": len(block.operations), "variables": len(block.variables)}
        self._blocks.append({"graph": graph.graph, "rank": program.rank, "line": block.line, **links, **counts})
        for index, operation in enumerate(block.operations):
            self.rounded = self.rounded or _rounded(operation.attributes)
            if is_communication(operation.bare_type):
                row = {"node_id": graph.nodes[index], "operation": operation.type}
                self._communication.append({**row, **collective(operation)})

    def facts(self) -> dict[str, Any]:
        """Returns blocks with links, communication, parallelism by the largest mesh, sharding of the optimizer."""
        return {
            "blocks": self._blocks,
            "communication": self._communication,
            "parallelism": self._meshes.parallelism(),
            "sharding": self._sharding,
        }


def _rounded(attributes: dict[str, Any]) -> float | None:
    """Returns a number among the attributes that has as many digits as Paddle prints, so that it may go on."""
    numbers = (value for value in attributes.values() if isinstance(value, float))
    return next(
        (value for value in numbers if len(f"{value:.9e}".partition("e")[0].rstrip("0")) == DIGITS + 1 + (value < 0)),
        None,
    )


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
