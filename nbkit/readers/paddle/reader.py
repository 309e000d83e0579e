"""read_paddle_program: a Paddle program as a trace with one graph per block."""

from pathlib import Path
from typing import Any

from nbkit.graphs.rows import GraphRows
from nbkit.readers.paddle import communication
from nbkit.readers.paddle.forms import RanksReader, begins
from nbkit.readers.paddle.graph import BlockGraph
from nbkit.readers.paddle.records import Program
from nbkit.readers.paddle.unread import Unread
from nbkit.readers.text_file import TextLines, text_lines
from nbkit.trace import Trace


def looks_like(head: str) -> bool:
    """Whether the first few hundred lines of a file show a Paddle program of any form."""
    return any(begins(line) for line in head.splitlines())


def read_paddle_program(path: Path) -> Trace:
    """The graphs of every program in the file: frames nodes, edges and graph_tensors, one graph per block.

    What cannot be read is a row of meta["unread"]; a file without any program has no rows. Raises TraceError if the
    file itself cannot be read.
    """
    lines, unread = text_lines(path), Unread()
    reader = RanksReader(unread)
    for number, line in enumerate(lines, 1):
        reader.line(number, line)
    reader.close()
    rows = GraphRows()
    facts = _add(rows, reader.programs)
    return Trace(rows.frames(), _meta(path, lines, unread, reader.programs, facts))


def _add(rows: GraphRows, programs: list[Program]) -> dict[str, Any]:
    """Adds every block; what the programs say beside their graphs."""
    blocks: list[dict[str, Any]] = []
    collectives: list[dict[str, Any]] = []
    for number, program in enumerate(programs, 1):
        prefix = f"program {number} " if number > 1 else ""
        for index in sorted(program.blocks):
            block = program.blocks[index]
            graph = BlockGraph(rows, program, block, prefix)
            graph.add()
            links = {name: getattr(block, name) for name in ("parent", "forward", "backward")}
            counts = {"operations": len(block.operations), "variables": len(block.variables)}
            blocks.append({"graph": graph.graph, "rank": program.rank, "line": block.line, **links, **counts})
            for place, operation in enumerate(block.operations):
                if communication.is_communication(operation.bare_type):
                    row = {"node_id": graph.nodes[place], "operation": operation.type}
                    collectives.append({**row, **communication.collective(operation)})
    held = [block for program in programs for block in program.blocks.values()]
    return {
        "blocks": blocks,
        "communication": collectives,
        "parallelism": communication.parallelism(held),
        "sharding": communication.sharding(held),
    }


def _meta(
    path: Path, lines: TextLines, unread: Unread, programs: list[Program], facts: dict[str, Any]
) -> dict[str, Any]:
    notes = []
    if lines.undecodable_bytes:
        notes.append(f"{lines.undecodable_bytes:,} bytes are not of the file's encoding; they are shown as U+FFFD.")
    if lines.damage:
        notes.append(f"The file is not whole: {lines.damage}.")
    if unread.count > len(unread.rows):
        notes.append(f"{unread.count:,} lines could not be read; the first {len(unread.rows):,} are listed.")
    return {
        "verb": "opgraph",
        "name": path.name,
        "created": None,
        "source": "Paddle program: " + (programs[0].form if programs else "none found"),
        "complete": bool(programs) and all(program.is_whole for program in programs) and not lines.damage,
        "error": None,
        "unread": unread.rows,
        "notes": notes,
        "paddle": facts,
    }
