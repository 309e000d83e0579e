"""Charts of what a step costs by module and op: as a treemap, a sunburst or, static, as an icicle.

Notebooks and reports have them as HTML that needs no script.
"""

import re
from typing import Any, Literal

import pandas as pd

from nbkit import units
from nbkit.analysis.cost.cost_tree import cost_tree
from nbkit.analysis.cost.op_totals import has_whole_costs
from nbkit.errors import OptionError, nearest
from nbkit.trace.checks import checked_trace
from nbkit.trace.once import once_per_view
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.boxes import placed_boxes
from nbkit.views.plots.figures import (
    INK,
    LINES,
    NO_COLOR,
    Figure,
    LiveFigure,
    live_figure,
    static_figure,
    translucent,
    without_markup,
    without_math,
)
from nbkit.views.plots.memory import STATIC_BUCKETS, memory_by_kind_picture
from nbkit.views.plots.picture.areas_svg import areas_svg
from nbkit.views.sections.writers import without_middle
from nbkit.views.static_html.figure_svg import figure_svg
from nbkit.views.summary.names import short_op, shown

By = Literal["flops", "moved_bytes", "saved_bytes", "params", "time_us"]
# What each amount is called, and how it reads.
AMOUNTS = {
    "flops": ("FLOPs", units.flops),
    "moved_bytes": ("Bytes moved", units.data_size),
    "saved_bytes": ("Saved for the backward pass", units.data_size),
    "params": ("Parameters", units.count),
    "time_us": ("Predicted time", units.duration),
}
SHAPES = ("treemap", "sunburst")
OP_COLORS = ("#3b82f6", "#d97706", "#16a34a", "#a855f7", "#0891b2", "#d94fa6", "#84a30f", "#b45309")
OTHER_COLOR, MODULE_COLOR = "#808080", "#94a3b8"
# Of the whole: what is smaller cannot be seen. And how many rows are drawn at most.
SMALLEST, MOST = 5e-4, 400
# Inches per row of the icicle, and the share of its width that a letter takes.
ROW, CHARACTER, WIDTH, ALPHA, MODULE_ALPHA = 0.24, 0.0062, 9.0, 0.6, 0.06
# Characters of a label: plotly breaks no names.
LONGEST = 26
# The id of the box around all others; those of rows are numbers.
WHOLE = "whole"
# A module that holds one other and hardly more is drawn as one with it.
ALL_OF_IT = 0.99
# Of a length in points the first digit behind the dot can be seen.
_PATH, _TOO_FINE = re.compile(r' d="[^"]*"'), re.compile(r"(\d\.\d)\d+")
_NAMESPACE = re.compile(r' xmlns(:xlink)?="[^"]*"')


def plot_cost(
    trace: Trace, by: By = "flops", *, shape: Literal["treemap", "sunburst"] = "treemap", fold: bool = True
) -> "LiveFigure":
    """Returns a live chart of what a step costs, modules inside modules, ops inside those; click to zoom in.

    `by`: flops, moved_bytes, saved_bytes, params, or time_us where a device was given. With `fold` layers that are
    alike are one, such as `layers.* ×32`. Ops have a color by their name. What is less than 0.05 % of the whole is left
    out. Raises OptionError.
    """
    from plotly import graph_objects

    if shape not in SHAPES:
        raise OptionError(f"shape={shape!r} is not a way to draw costs; {nearest(str(shape), SHAPES)}")
    rows, whole = _rows(trace, by, fold)
    title, written = AMOUNTS[by]
    is_module = rows["color"] == MODULE_COLOR
    shared = {
        "ids": [WHOLE, *rows["node_id"].astype(str)],
        "parents": ["", *(WHOLE if pd.isna(parent) else str(int(parent)) for parent in rows["parent_id"])],
        "labels": ["step" if trace.complete else "until it stopped", *map(without_markup, rows["label"])],
        "values": [whole, *rows["value"]],
        "branchvalues": "total",
        "text": [written(whole), *(f"{written(value)}, {units.share(value / whole)}" for value in rows["value"])],
        "customdata": ["step", *map(without_markup, rows["path"])],
        "hovertemplate": "%{customdata}<br>%{text}<extra></extra>",
        "marker": {"colors": [NO_COLOR, *map(_fill, rows["color"])], "line": {"color": LINES, "width": 1}},
        "textfont_color": [INK, *(INK if is_one else "white" for is_one in is_module)],
    }
    if shape == "treemap":
        boxes = graph_objects.Treemap(**shared, textinfo="label+text", tiling_pad=2, pathbar_visible=False)
    else:
        boxes = graph_objects.Sunburst(**shared, textinfo="label", insidetextorientation="radial", leaf_opacity=1.0)
    figure = live_figure([boxes], _title(trace, title, written(whole)), 520, "")
    if shape == "treemap":
        # What would have to be smaller to fit its box is not written, but has a tooltip.
        figure.update_layout(uniformtext={"minsize": 10, "mode": "hide"})
    return figure.with_static_view(lambda: draw_cost(trace, by, fold=fold))


def _fill(color: str) -> str:
    return translucent(color, MODULE_ALPHA) if color == MODULE_COLOR else color


def draw_cost(trace: Trace, by: By = "flops", *, fold: bool = True) -> "Figure":
    """Draws what a step costs as a static icicle: below a module what is in it, the widest to the left."""
    rows, whole = _rows(trace, by, fold)
    depth = int(rows["depth"].max()) + 1 if len(rows) else 1
    title, written = AMOUNTS[by]
    text = _title(trace, title, written(whole if len(rows) else 0))
    figure, axes = static_figure(text, 0.7 + ROW * depth, "", WIDTH)
    for row, (_, left) in zip(list[Any](rows.itertuples(index=False)), _places(rows), strict=True):
        axes.barh(row.depth, row.value, 0.92, left, color=row.color, alpha=ALPHA, edgecolor="white", linewidth=0.4)
        room = int(row.value / whole / CHARACTER) - 1
        label = f"{row.label}  {written(row.value)}"
        label = label if len(label) <= room else row.label
        if room >= 4:
            cut = label if len(label) <= room else f"{label[: room - 1]}…"
            axes.text(left + whole * 0.003, row.depth, without_math(cut), va="center", fontsize=6)
    axes.set(xlim=(0, whole or 1.0), ylim=(depth - 0.5, -0.5))
    axes.xaxis.set_visible(False)
    axes.yaxis.set_visible(False)
    axes.spines[["left", "bottom"]].set_visible(False)
    return figure


def _title(trace: Trace, title: str, whole: str) -> str:
    return f"{title} by module and op{f': {whole}' if trace.complete else ', until the step stopped'}"


def _rows(trace: Trace, by: str, fold: bool) -> tuple[pd.DataFrame, float]:
    """Returns the rows that are drawn, with value, label, path and color, parents first; and the value of the whole."""
    if str(by) not in AMOUNTS:
        raise OptionError(f"by={by!r} is not an amount of a cost; {nearest(str(by), AMOUNTS)}")
    tree = cost_tree(checked_trace(trace), fold=fold)
    value = tree[by].astype("Float64").fillna(0.0).to_numpy("float64")
    if by == "time_us" and not value.sum():
        raise OptionError(
            "by='time_us' needs predicted times; give opcost a device, such as nbkit.opcost(device='H100')."
        )
    whole = float(value[(tree["depth"] == 0).to_numpy(bool)].sum())
    tree = tree.assign(value=value)[value > SMALLEST * whole]
    tree = tree.nlargest(MOST, "value", keep="first").sort_index().reset_index(drop=True)
    tree["label"] = [_label(row) for row in tree.itertuples(index=False)]
    tree["path"] = [_path(row) for row in tree.itertuples(index=False)]
    tree = _without_chains(tree)
    ops = tree[tree["kind"] == "op"].groupby("name", sort=False)["value"].sum().sort_values(ascending=False)
    colors = dict(zip(ops.index, OP_COLORS, strict=False))
    tree["color"] = [
        colors.get(name, OTHER_COLOR) if kind == "op" else MODULE_COLOR
        for name, kind in zip(tree["name"], tree["kind"], strict=True)
    ]
    return tree, whole


def _label(row: Any) -> str:
    name = without_middle(short_op(row.name) if row.kind == "op" else shown(row.name), LONGEST)
    return f"{name} ×{row.instances}" if row.instances > 1 else name


def _path(row: Any) -> str:
    """Says where a row is, whole."""
    if row.kind == "outside" or not isinstance(row.model, str):
        return str(row.label)
    module = shown(f"{row.model} {row.module}".strip())
    return f"{module}, {shown(row.name)}" if row.kind == "op" else module


def _without_chains(tree: pd.DataFrame) -> pd.DataFrame:
    """Joins modules that hold one drawn module and hardly more with that, as `layers.*`; the ids stay their own."""
    rows = {row["node_id"]: row for row in tree.to_dict("records")}
    inside: dict[object, list[int]] = {}
    for node, row in rows.items():
        inside.setdefault(row["parent_id"], []).append(node)
    for node, row in [*rows.items()]:
        below = inside.get(node, [])
        only = rows[below[0]] if len(below) == 1 else None
        if only is None or only["kind"] != "module" or only["value"] < ALL_OF_IT * row["value"] or not row["depth"]:
            continue
        only.update(label=f"{row['name']}.{only['label']}", name=f"{row['name']}.{only['name']}")
        only.update(parent_id=row["parent_id"])
        inside[row["parent_id"]] = [below[0] if other == node else other for other in inside[row["parent_id"]]]
        del rows[node]
    joined = pd.DataFrame([*rows.values()], columns=tree.columns)
    depths: dict[object, int] = {}
    for node, parent in zip(joined["node_id"], joined["parent_id"], strict=True):
        depths[node] = 0 if pd.isna(parent) else depths[parent] + 1
    return joined.assign(depth=[depths[node] for node in joined["node_id"]])


def _places(rows: pd.DataFrame) -> list[tuple[int, float]]:
    """Returns depth and left edge of each row; a row is never wider than what holds it."""
    position = {node: place for place, node in enumerate(rows["node_id"].tolist())}
    below = [-1 if pd.isna(parent) else position[parent] for parent in rows["parent_id"]]
    order = sorted(range(len(rows)), key=lambda place: (rows["depth"].iloc[place], -rows["value"].iloc[place]))
    placed = placed_boxes(order, below, rows["value"].tolist())
    return [placed[place] for place in range(len(rows))]


@once_per_view
def memory_picture(trace: Trace) -> str:
    """Returns the memory of the step over its ops; empty where it is not known, or for a part of the step alone."""
    if not trace.complete or not len(trace.frames.get("memory", ())):
        return ""
    picture = memory_by_kind_picture(trace, STATIC_BUCKETS)
    return f'<figure class="wide">{areas_svg(picture)}</figure>' if picture.charts[0].series else ""


def cost_pictures(trace: Trace) -> str:
    """Returns the memory of the step over its ops, and its FLOPs by module and op."""
    flops = _figure(draw_cost(trace), "cost-flops-") if has_whole_costs(trace) else ""
    return f'<div class="charts">{memory_picture(trace)}{flops}</div>'


def _figure(figure: "Figure", prefix: str) -> str:
    svg = _PATH.sub(lambda match: _TOO_FINE.sub(r"\1", match[0]), figure_svg(figure, prefix))
    # Inside HTML an svg element needs no namespaces, which are addresses.
    svg = _NAMESPACE.sub("", svg).replace("xlink:href", "href")
    return f'<figure class="wide">{svg}</figure>'
