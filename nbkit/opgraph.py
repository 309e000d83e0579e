"""opgraph: the graph of a model, a trace, a dump or an ONNX model, with its parts recognised; two of them compared."""

from os import PathLike
from typing import Any

from nbkit.analysis.graph.op_graph import trace_graph
from nbkit.analysis.graph_match.compare_graphs import compare_graphs, compared_graphs
from nbkit.analysis.graph_match.side_frames import merged, one_graph
from nbkit.analysis.structure.recognise import recognise
from nbkit.capture.graphs.live_graph import live_graph
from nbkit.errors import OptionError, nearest
from nbkit.load import load
from nbkit.schema import MODULES, TENSORS
from nbkit.trace.trace import Trace


def opgraph(source: Any, *, against: Any = None, graph: str | None = None, name: str | None = None) -> Trace:
    """A trace with the graph of `source` in the frames nodes, edges, graph_tensors and parts.

    Parts of RWKV and LLaMA are recognised, from names where there are some and from the dataflow where not: the roles
    of nodes, parts and modules, and the blocks that repeat.

    Args:
        source: a module (its tree), a program of torch.export or an FX graph, a recorded trace, or the path of a
            OneFlow log, a Paddle program, an ONNX model or a saved trace.
        against: another one. The trace then has the graphs of both, and its frame correspondence says which parts,
            parameters and ops of them are the same and which only one of them has. Of several graphs those of equal
            names are compared, else the first with ops of either side.
        graph: the one graph that is meant, where the source has several.
        name: what the trace is to be called, in place of the name of the file or the class of the module.

    Raises:
        OptionError: if such a source has no graph, or none of that name.
        TraceError: if the file cannot be read.
    """
    found = _graph_of(source)
    if graph is not None:
        found = _chosen(found, graph)
    if against is not None:
        found = _compared(found, _graph_of(against))
    if name is not None:
        found.meta["name"] = name
    return found


def _graph_of(source: Any) -> Trace:
    trace = load(source) if isinstance(source, str | PathLike) else source
    if not isinstance(trace, Trace):
        trace = live_graph(trace)
    if "nodes" not in trace.frames:
        trace = _of_ops(trace)
    frames = trace.frames if "parts" in trace.frames else recognise(trace.frames)
    return Trace(frames, {**trace.meta, "verb": "opgraph"}, trace.captured)


def _of_ops(trace: Trace) -> Trace:
    """A recorded step with the graph of its ops beside its own frames."""
    if "ops" not in trace.frames:
        raise OptionError("This trace has no graph: it has neither nodes nor ops; record a step or read a dump.")
    tensors, modules = (trace.frames.get(table.name, table.frame()) for table in (TENSORS, MODULES))
    notes = [] if "tensors" in trace.frames else ["no tensors were recorded, so the graph has no edges"]
    meta = {**trace.meta, "source": "recorded step", "notes": [*trace.meta.get("notes", []), *notes]}
    return Trace({**trace.frames, **trace_graph(trace.ops, tensors, modules)}, meta, trace.captured)


def _chosen(trace: Trace, graph: str) -> Trace:
    graphs = list(dict.fromkeys(trace.nodes["graph"]))
    if graph not in graphs:
        raise OptionError(f"There is no graph {graph!r} in {trace.meta.get('name')!r}; {nearest(graph, graphs)}")
    return Trace(one_graph(trace.frames, graph), trace.meta, trace.captured)


def _compared(left: Trace, right: Trace) -> Trace:
    """Both graphs in one trace, with their correspondence; meta says of each side what it is."""
    pairs = compared_graphs(left.nodes, right.nodes)
    frames = merged(left.frames, right.frames, compare_graphs(left.frames, right.frames))
    names = [str(side.meta.get("name") or side.meta.get("source")) for side in (left, right)]
    notes = [f"{name}: {note}" for name, side in zip(names, (left, right), strict=True) for note in _notes(side)]
    if names[0] == names[1] and len(pairs) == 1 and len(set(pairs[0])) > 1:  # two graphs of one source
        names = [f"{name}, {graph}" for name, graph in zip(names, pairs[0], strict=True)]
    graphs = frames["nodes"]["graph"].tolist()
    meta = {
        "verb": "opgraph",
        "name": " against ".join(names),
        "created": right.meta.get("created"),
        "source": "two graphs",
        "complete": left.complete and right.complete,
        "error": left.meta.get("error") or right.meta.get("error"),
        "left": _said(left, names[0], [one for one, _ in pairs], graphs[: len(left.nodes)]),
        "right": _said(right, names[1], [other for _, other in pairs], graphs[len(left.nodes) :]),
        "notes": list(dict.fromkeys(notes)),
    }
    return Trace(frames, meta)


def _said(side: Trace, name: str, compared: list[str], graphs: list[str]) -> dict[str, Any]:
    """What a side is: its graphs that were compared, and all of them as they are called beside those of the other."""
    said = {key: side.meta.get(key) for key in ("source", "created", "versions", "complete")}
    return {"name": name, **said, "compared": compared, "graphs": list(dict.fromkeys(graphs))}


def _notes(side: Trace) -> list[str]:
    skipped = len(side.meta.get("skipped_lines", []))
    return [
        *side.meta.get("notes", []),
        *([f"{skipped} of its lines could not be read"] if skipped else []),
        *([] if side.nodes["kind"].eq("op").any() else ["it has no ops, so only parts and parameters are compared"]),
    ]
