"""opgraph makes the graph of a model, a trace, a dump or an ONNX model, with its parts recognized, and compares two.

Its trace is shown as the graph, its outline and tables of parts, roles and ops.
"""

from argparse import Namespace
from collections.abc import Callable
from os import PathLike
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.analysis.graph.op_graph import trace_graph
from nbkit.analysis.graph_match.compare_graphs import compare_graphs, compared_graphs
from nbkit.analysis.graph_match.side_frames import merged, one_graph
from nbkit.analysis.structure.recognise import recognise
from nbkit.errors import OptionError, nearest
from nbkit.graphs.overlay import Colored
from nbkit.schema import MODULES, TENSORS
from nbkit.trace.trace import Trace
from nbkit.verbs.load import load
from nbkit.verbs.options.generated import Option, OptionHolder, add_options
from nbkit.verbs.options.parser import absolute_path
from nbkit.verbs.verb import PROGRAM, Command, LineMagic, Outcome, Verb
from nbkit.views.graph.panel import graph_panel
from nbkit.views.op_table.report_data import op_panel
from nbkit.views.ops_view import widget_named
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.plots import draw_metrics
from nbkit.views.report.opreport import opreport
from nbkit.views.sections.graph.correspondence import correspondence_sections
from nbkit.views.sections.graph.graph import graph_sections, graph_totals, skipped_sections
from nbkit.views.statements.graph import graph_statements
from nbkit.views.static_html.view import View


def opgraph(
    source: Any,
    *,
    against: Any = None,
    graph: str | None = None,
    name: str | None = None,
    color: str | None = None,
) -> Trace:
    """Returns a trace with the graph of `source` in the frames nodes, edges, graph_tensors and parts.

    Parts of RWKV and LLaMA are recognized, from names where there are some and from the dataflow where not: the roles
    of nodes, parts and modules, and the blocks that repeat.

    Args:
        source: a module (its tree), a program of torch.export or an FX graph, a recorded trace, or the path of a
            OneFlow log, a Paddle program, an ONNX model or a saved trace.
        against: another one. The trace then has the graphs of both, and its frame correspondence says which parts,
            parameters and ops of them are the same and which only one of them has. Of several graphs those of equal
            names are compared, else the first with ops of either side.
        graph: the graph that is meant, where the source has several.
        color: a column of the frame nodes that colors the graph, such as sbp, device, mesh, ring or peer of a dump;
            `color_by` takes columns of other frames.
        name: what the trace is called where it is shown, in place of the name of the file or the class of the module.

    Raises:
        OptionError: if such a source has no graph, or none of that name, or nodes have no such column.
        TraceError: if the file cannot be read.
    """
    trace = _graph_of(source)
    if graph is not None:
        trace = _chosen(trace, graph)
    colored: Colored = trace.nodes
    if against is not None:
        right = _graph_of(against)
        left, other = _known(trace.nodes, color), _known(right.nodes, color)
        colored = (left, other) if left is not None or other is not None else (trace.nodes, right.nodes)
        trace = _compared(trace, right)
    if color is not None:
        trace = trace.color_by(colored, color)
    if name is not None:
        trace.meta["name"] = name
    return trace


def _known(nodes: pd.DataFrame, column: str | None) -> pd.DataFrame | None:
    """Returns the nodes of a side, None of one where nothing is known of the column."""
    return None if column in nodes and nodes[column].isna().all() else nodes


def _graph_of(source: Any) -> Trace:
    trace = load(source) if isinstance(source, str | PathLike) else source
    if not isinstance(trace, Trace):
        from nbkit.capture.graphs.live_graph import live_graph  # torch, which a file does without

        trace = live_graph(trace)
    if "nodes" not in trace.frames:
        trace = _of_ops(trace)
    trace = trace.color_by(None)
    frames = trace.frames if "parts" in trace.frames else recognise(trace.frames)
    return Trace(frames, {**trace.meta, "verb": "opgraph"}, trace.captured)


def _of_ops(trace: Trace) -> Trace:
    """Returns a recorded step with the graph of its ops beside its own frames."""
    if "ops" not in trace.frames:
        raise OptionError("This trace has no graph: it has neither nodes nor ops; record a step or read a dump.")
    tensors, modules = (trace.frames.get(table.name, table.frame()) for table in (TENSORS, MODULES))
    notes = [] if "tensors" in trace.frames else ["no tensors were recorded, so the graph has no edges"]
    meta = {**trace.meta, "source": "recorded step", "notes": [*trace.meta.get("notes", []), *notes]}
    return Trace({**trace.frames, **trace_graph(trace.ops, tensors, modules)}, meta, trace.captured)


def _chosen(trace: Trace, graph: str) -> Trace:
    graphs = list(dict.fromkeys(trace.nodes["graph"]))
    if graph not in graphs:
        raise OptionError(f"There is no graph {graph!r} in {trace.meta.get('name')!r}; {nearest(str(graph), graphs)}")
    return Trace(one_graph(trace.frames, graph), trace.meta, trace.captured)


def _compared(left: Trace, right: Trace) -> Trace:
    """Returns both graphs in one trace, with their correspondence; meta says of each side what it is."""
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
        "left": _side(left, names[0], [name for name, _ in pairs], graphs[: len(left.nodes)]),
        "right": _side(right, names[1], [name for _, name in pairs], graphs[len(left.nodes) :]),
        "notes": list(dict.fromkeys(notes)),
    }
    return Trace(frames, meta)


def _side(side: Trace, name: str, compared: list[str], graphs: list[str]) -> dict[str, Any]:
    """Returns what meta says of a side: its compared graphs, and the names of all its graphs in the joined frames."""
    known = {key: side.meta.get(key) for key in ("source", "created", "versions", "complete")}
    return {"name": name, **known, "compared": compared, "graphs": list(dict.fromkeys(graphs))}


def _notes(side: Trace) -> list[str]:
    skipped = len(side.meta.get("skipped_lines", []))
    return [
        *side.meta.get("notes", []),
        *([f"{skipped} of its lines could not be read"] if skipped else []),
        *([] if side.nodes["kind"].eq("op").any() else ["it has no ops, so only parts and parameters are compared"]),
    ]


def _panels(contents: Contents) -> list[Panel]:
    ops = [op_panel(contents)] if len(contents.trace.frames.get("ops", ())) else []
    return [graph_panel(contents), *ops]


VIEW = View(
    widget=widget_named("graph_and_ops"),
    sections=lambda trace, count: [*correspondence_sections(trace, count), *graph_sections(trace, count)],
    charts=lambda trace: [draw_metrics(trace)] if len(trace.frames.get("metrics", ())) else [],
    calls=lambda trace, count: "",
    outcome=skipped_sections,
    panels=_panels,
    totals=lambda trace, count: [*correspondence_sections(trace, count), *graph_totals(trace, count)],
    shows="nodes",
    nothing="No node was read.",
    statements=graph_statements,
)


def _add_options(holder: OptionHolder, source: str, meaning: str) -> None:
    """Adds the options of a graph; `source` is what a source is called, `meaning` says what it may be."""
    against = "another graph, which it is compared with"
    special = {
        "source": Option(metavar=source, help=meaning),
        "against": Option(metavar=source, help=against),
        "graph": Option(metavar="GRAPH"),
        "color": Option(metavar="COLUMN"),
        "name": Option(help="what the trace is called where it is shown"),
    }
    add_options(holder, opgraph, special)


def _graph(options: Namespace, find: Callable[[str], object]) -> Trace:
    """Returns the trace that the options ask for; `find` gives what a word stands for."""
    against = None if options.against is None else find(options.against)
    return opgraph(find(options.source), against=against, graph=options.graph, name=options.name, color=options.color)


LINE = LineMagic(
    """\
Show the graph of a model, a recorded step, a dump of another framework or an ONNX model, with its parts recognized.

    %opgraph model                           the module tree of a model
    %opgraph _optrace                        the ops of a recorded step
    %opgraph 'rwkv.log' -o log               the graphs in a log, stored as log
    %opgraph 'rwkv.log' --color sbp          colored by how tensors are spread
    %opgraph program --against 'rwkv.log'    what corresponds in both

SOURCE is a name of this notebook (a module, what torch.export.export() gave, a trace; model.layers is a name, too), or
the path of a file or a saved trace, in quotes where it has blanks.""",
    lambda holder: _add_options(holder, "SOURCE", "a name of this notebook, or a path"),
    lambda options, notebook: _graph(options, notebook.source),
    stores_result=True,
)


def _add_command_options(holder: OptionHolder) -> None:
    output = "write the HTML file FILE instead of text; one that is there is replaced"
    holder.add_argument("-o", "--output", type=absolute_path, metavar="FILE", help=output)
    holder.add_argument("--save", type=absolute_path, metavar="FOLDER", help="save the graph as a trace there")
    _add_options(holder, "PATH", "a file, or the folder of a saved trace")


def _run_command(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    def find(path: str) -> Trace:
        progress(f"reading {path}")
        return load(path)

    trace = _graph(options, find)
    if options.save is not None:
        trace.save(options.save)
    if options.output is not None:
        progress(f"writing {options.output}")
        opreport(trace, path=options.output)
        return Outcome(f"{options.output}: {units.data_size(options.output.stat().st_size)}")
    return Outcome(trace.summary() if options.save is None else None)


COMMAND = Command(
    "graph",
    "show the graph in a dump or a trace, or compare two",
    "graph rwkv.log --against rwkv.onnx",
    f"""\
Show the graph in a OneFlow nn.Graph log, a Paddle program, an ONNX model or a saved trace, with its parts recognized:
modules, RWKV and LLaMA blocks, what repeats.

    {PROGRAM} graph rwkv.log
        shows what it is made of
    {PROGRAM} graph rwkv.log -o report.html
        writes it as a page, with the graph to unfold
    {PROGRAM} graph llama.prog --color ring -o report.html
        colors it by the rings in which ranks communicate
    {PROGRAM} graph rwkv.log --against rwkv.onnx
        shows which parts, parameters and ops of both correspond
    {PROGRAM} graph rwkv.log --graph 'GraphBase_0 traced' --save traced
        saves one of its graphs as a trace

Exit status: 0; 2 if a file cannot be read or written.""",
    _add_command_options,
    _run_command,
)
OPGRAPH = Verb("opgraph", view=VIEW, line=LINE, command=COMMAND)
