"""Turns programs into rows, one after the other, and collects what they say beside their graphs."""

from typing import Any

from nbkit.graphs.rows import GraphRows
from nbkit.readers.paddle.communication import Meshes, collective, is_communication, sharding
from nbkit.readers.paddle.graph import BlockGraph
from nbkit.readers.paddle.records import Block, Program

# Paddle prints floats with six digits.
DIGITS = 6


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
