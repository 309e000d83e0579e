"""Graphs written in a few words, as frames with parts."""

from collections.abc import Sequence

import pandas as pd

from nbkit.analysis.structure.recognise import recognise
from nbkit.graphs.rows import GraphRows

# Name, op ("parameter", "input" and "output" for such nodes), module, shape, names of what it reads.
NodeRow = tuple[str, str, str, list[int], Sequence[str]]
Frames = dict[str, pd.DataFrame]
KINDS = ("parameter", "buffer", "input", "output")


def make_graph(graph: str, *nodes: NodeRow, dtype: str = "float32", phase: str | None = None) -> Frames:
    """The frames of a graph of these nodes; a node reads only those before it."""
    rows = GraphRows()
    ids: dict[str, int] = {}
    for name, op, module, shape, reads in nodes:
        kind = op if op in KINDS else "op"
        columns = {"op": op if kind == "op" else None, "module": module, "dtype": dtype}
        ids[name] = rows.node(graph, kind, name, shape=shape, phase=phase if kind == "op" else None, **columns)
        for port, read in enumerate(reads):
            rows.edge(ids[read], ids[name], read, dst_port=port)
    return recognise(rows.frames())


def mlp(graph: str, prefix: str, ops: dict[str, str], *, turned: bool = False, dtype: str = "float32") -> Frames:
    """Two matrix products with a ReLU between, under the names that `ops` gives to linear and relu."""
    up, down = ([4, 8], [8, 4]) if turned else ([8, 4], [4, 8])
    first, second = f"{prefix}up", f"{prefix}down"
    return make_graph(
        graph,
        ("x", "input", "", [2, 4], ()),
        (f"{first}.weight", "parameter", first, up, ()),
        (f"{second}.weight", "parameter", second, down, ()),
        (f"{graph} a", ops["linear"], first, [2, 8], ("x", f"{first}.weight")),
        (f"{graph} b", ops["relu"], prefix.rstrip("."), [2, 8], (f"{graph} a",)),
        (f"{graph} c", ops["linear"], second, [2, 4], (f"{graph} b", f"{second}.weight")),
        dtype=dtype,
    )


def renamed(frames: Frames, graph: str) -> Frames:
    """The frames of one graph under another name."""
    return {name: frame.assign(graph=graph) if "graph" in frame else frame for name, frame in frames.items()}
