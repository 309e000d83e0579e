"""Charts of how often each op is there: on both sides of an alignment, in the graphs of a model, in a step."""

import pandas as pd

from nbkit import units
from nbkit.analysis.time.times import computing_ops
from nbkit.errors import OptionError
from nbkit.schema import NODES
from nbkit.trace.checks import checked_count, checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import Figure, LiveFigure, cut_names
from nbkit.views.plots.self_time import Bars, live_bars, static_bars
from nbkit.views.summary.facts import PHASE_COLORS
from nbkit.views.summary.names import shown

# Graphs of a trace are told apart by the colors of phases; those of further ones are one part.
COLORS = tuple(PHASE_COLORS.values())
FURTHER = "further graphs"


def plot_op_counts(trace: Trace, count: int = 20) -> "LiveFigure":
    """Returns a live bar chart of the most frequent ops, a color for each side of an alignment and each graph.

    Of an alignment results are counted: an op that has several counts once for each.
    """
    return live_bars(_counts(checked_trace(trace), count))


def draw_op_counts(trace: Trace, count: int = 20) -> "Figure":
    """Draws plot_op_counts as a static figure."""
    return static_bars(_counts(trace, count))


def _counts(trace: Trace, count: int) -> Bars:
    checked_count("count", count)
    ops = _ops_of(trace)
    totals = ops.groupby(["op", "part"], sort=False).size().unstack(fill_value=0)
    every = totals.sum(axis=1)
    order = every.sort_values(ascending=False, kind="stable").index[:count][::-1]
    table = totals.loc[order].astype("float64").set_axis(cut_names([shown(str(name)) for name in order]))
    labels = None
    if len(table.columns) == 1:
        labels = [units.counted(int(every[name]), "op") for name in order]
    left_out = f", {count} of {units.count(len(every))} kinds" if len(every) > count else ""
    colors = dict(zip(map(str, table), COLORS, strict=False))
    # The graphs of opalign have a node for each result, so an op with several counts as often.
    what = "results by op" if trace.meta.get("verb") == "opalign" else "ops"
    return Bars(f"Number of {what}{left_out}", table, labels, what.partition(" ")[0], colors)


def _ops_of(trace: Trace) -> pd.DataFrame:
    """Returns a row for each op with the part of the trace that it belongs to. Raises OptionError if it has no ops."""
    if len(trace.frames.get("ops", ())):
        return pd.DataFrame({"op": computing_ops(trace.ops)["op"], "part": "step"})
    if "nodes" not in trace.frames:
        made = trace.meta.get("verb")
        raise OptionError(f"This trace of {made} has no ops to count; give one of nbkit.opalign, opgraph or optrace.")
    nodes = NODES.check(trace.frames["nodes"])
    ops = nodes[nodes["kind"] == "op"]
    graphs = ops["graph"].astype(object).fillna("graph")
    known = list(graphs.unique()[: len(COLORS) - 1])
    names = ops["op"].astype(object).fillna("unknown")
    return pd.DataFrame({"op": names, "part": graphs.where(graphs.isin(known), FURTHER)})
