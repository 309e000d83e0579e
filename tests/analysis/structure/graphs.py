"""Small graphs for the tests of structure: written in a few words, and those of models with their names taken away."""

from collections.abc import Sequence

import pandas as pd

from nbkit.analysis.structure.flow import Flow
from nbkit.graphs.rows import GraphRows
from nbkit.step.nodes import Nodes

Frames = dict[str, pd.DataFrame]
HELD = ("parameter", "buffer", "constant", "input")


class Ops:
    """Ops one after the other; each call gives its name, which later ones read."""

    def __init__(self, graph: str = "g") -> None:
        self.rows, self.graph = GraphRows(), graph
        self.ids: dict[str, int] = {}

    def __call__(self, op: str, *reads: str, shape: Sequence[int] = (2, 8, 4), name: str = "", **columns: str) -> str:
        name = name or f"n{len(self.ids)}"
        kind = op if op in HELD else "op"
        self.ids[name] = self.rows.node(
            self.graph, kind, name, op=None if kind in HELD else op, shape=list(shape), **columns
        )
        for port, read in enumerate(reads):
            self.rows.edge(self.ids[read], self.ids[name], read, dst_port=port)
        return name

    def linear(self, x: str, inward: int, outward: int, **columns: str) -> str:
        """A product with a weight of its own."""
        weight = self("parameter", shape=(inward, outward), **columns)
        return self("MatMul", x, weight, shape=(2, 8, outward), **columns)

    @property
    def frames(self) -> Frames:
        return self.rows.frames()

    @property
    def flow(self) -> Flow:
        frames = self.frames
        return Flow(Nodes(frames["nodes"], frames["edges"]), range(len(frames["nodes"])))

    def names(self, nodes: Sequence[int]) -> list[str]:
        known = list(self.ids)
        return sorted(known[node] for node in nodes)


def nameless(frames: Frames) -> Frames:
    """The nodes and edges of a graph without module paths and names, and without the modules."""
    nodes, edges = frames["nodes"], frames["edges"]
    none = pd.Series([None] * len(nodes), dtype=nodes["module"].dtype)
    names = pd.Series([f"n{node}" for node in nodes["node_id"]], dtype=nodes["name"].dtype)
    tensors = pd.Series([f"t{edge}" for edge in range(len(edges))], dtype=edges["tensor"].dtype)
    return {"nodes": nodes.assign(module=none, name=names), "edges": edges.assign(tensor=tensors)}


def roles(frames: Frames, graph: str | None = None) -> dict[str, int]:
    """How many parts have each role; in a training step those of its forward count."""
    parts = frames["parts"]
    is_counted = (parts["phase"].isna() & (parts["role"] != "communication")) | (parts["phase"] == "forward")
    if graph is not None:
        is_counted &= parts["graph"] == graph
    return parts.loc[is_counted, "role"].dropna().value_counts().to_dict()
