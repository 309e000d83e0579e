"""Packs the nodes, edges and parts of a trace as one block for the graph view, in notebook and report alike."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from nbkit.analysis.query.encoded import TextColumn, text_column
from nbkit.analysis.structure.parameters import held_parameters
from nbkit.graphs.overlay import NAMES, named
from nbkit.schema import CORRESPONDENCE, EDGES, GRAPH_TENSORS, MODULES, NODES, PARTS, TEXT, Table
from nbkit.trace.trace import Trace
from nbkit.views.graph.overlay import NAME as OVERLAID
from nbkit.views.graph.overlay import Overlay, overlay_in
from nbkit.views.graph.values import COUNTED, PARAMETERS, VALUES, Floats, node_values
from nbkit.views.panels.pack import numbers, pack, texts
from nbkit.views.static_html.view import VIEWS
from nbkit.views.summary.facts import facts, is_module_tree
from nbkit.views.summary.names import shown

NAME_LIMIT, ATTRIBUTES_LIMIT = 400, 4000
SIDES = ("left", "right")
COMPARED = ("level", "relation", "message")
# Figures of how a graph's step was recorded, which say nothing of the graph.
OF_RECORDING = ("overhead", "recorder")
# The id of a row is its place.
OWN_IDS = {"nodes": "node_id", "parts": "part_id"}


def graph_data(trace: Trace) -> bytes:
    """Packs the block that widgets/src/graph reads; equal traces give equal blocks.

    Texts are on one line and cut: names to 400 characters, attributes to 4,000.
    """
    known, values, overlay = facts(trace), node_values(trace), overlay_in(trace)
    nodes, parts, sides = graph_frame(trace, NODES), graph_frame(trace, PARTS), comparison_sides(trace)
    nodes = nodes.assign(**{name: named(nodes[name]).astype(TEXT) for name in NAMES})
    trees = module_trees(nodes)
    held = held_parameters(nodes, parts, graph_frame(trace, GRAPH_TENSORS))
    outlines = [VALUES[name].outline(name) for name in values]
    if trees and held[COUNTED].fillna(0).any():
        outlines.insert(0, PARAMETERS.outline(COUNTED))
    if overlay and overlay.value:
        outlines.insert(0, overlay.value.outline(OVERLAID))
    return pack(
        {
            "title": known.title,
            "name": model_name(trace),
            "incomplete": known.incomplete,
            "figures": [list(figure) for figure in known.figures if figure[0] not in OF_RECORDING],
            "notes": list(known.notes),
            "graphs": nodes["graph"].unique().tolist(),
            "trees": trees,
            "values": outlines,
            "overlay": overlay and overlay.outline(),
            "nodes": _table(nodes, "nodes", values, overlay),
            "edges": _table(graph_frame(trace, EDGES), "edges"),
            "parts": _table(parts.assign(**held), "parts", {}, overlay),
            "comparison": sides and {"sides": sides, "rows": _table(comparison_rows(trace), "correspondence")},
        }
    )


def model_name(trace: Trace) -> str:
    """Returns what a file of the picture is called: the name that was given, of a recorded step its model's class."""
    name, modules = str(trace.meta.get("name") or "graph"), trace.frames.get("modules", MODULES.frame())
    roots = modules.loc[modules["depth"] == 0, "model"].dropna().tolist()
    return shown(roots[0] if name in VIEWS and roots else name)


def graph_frame(trace: Trace, table: Table) -> pd.DataFrame:
    """Returns a frame of a graph, without rows where the trace has none."""
    return table.check(trace.frames.get(table.name, table.frame()))


def module_trees(nodes: pd.DataFrame) -> list[str]:
    """Returns the graphs that are trees of modules, in which nothing is computed."""
    return [str(graph) for graph, few in nodes.groupby("graph", sort=False) if is_module_tree(few)]


def _table(
    frame: pd.DataFrame, name: str, more: Mapping[str, Floats] = {}, overlay: Overlay | None = None
) -> dict[str, Any]:
    """Packs a frame: texts as codes, ids and other numbers; with what colors its rows."""
    if overlay:
        if name in overlay.texts:
            frame = frame.assign(**{OVERLAID: overlay.texts[name]})
        more = {**more, **overlay.numbers.get(name, {})}
    words = [column for column, dtype in frame.dtypes.items() if dtype == TEXT]
    figures = [column for column in frame if column not in words and column != OWN_IDS.get(name)]
    floats: dict[Any, Floats] = {column: frame[column].to_numpy(np.float64, na_value=np.nan) for column in figures}
    return {
        "count": len(frame),
        "texts": {column: texts(_cut(frame[column])) for column in words},
        "numbers": {column: numbers(values) for column, values in (floats | dict(more)).items()},
    }


def _cut(values: pd.Series) -> TextColumn:
    """Replaces the texts of an encoded column by those that are shown."""
    column = text_column(values)
    limit = ATTRIBUTES_LIMIT if values.name == "attributes" else NAME_LIMIT
    return TextColumn(pd.Series([shown(text, limit) for text in column.values], dtype=TEXT), column.codes)


def comparison_sides(trace: Trace) -> list[dict[str, Any]] | None:
    """Returns the name and graphs of either side, compared ones first; None for a trace of one side."""
    rows = trace.frames.get("correspondence")
    sides = [trace.meta.get(side) for side in SIDES]
    if rows is None or not len(rows) or not all(isinstance(side, Mapping) and side.get("graphs") for side in sides):
        return None
    return [_side(trace, about, rows[f"{side}_id"], rows["level"]) for side, about in zip(SIDES, sides, strict=True)]


def comparison_rows(trace: Trace) -> pd.DataFrame:
    """Returns what the view needs of the frame `correspondence`."""
    rows = CORRESPONDENCE.check(trace.frames["correspondence"])
    return rows[["left_id", "right_id", *COMPARED]]


def _side(trace: Trace, about: Any, ids: pd.Series, levels: pd.Series) -> dict[str, Any]:
    compared = set()
    for frame, is_part in (("parts", True), ("nodes", False)):
        rows = ids[(levels == "part") == is_part].dropna().astype("int64")
        compared |= set(trace.frames[frame]["graph"].iloc[rows.to_numpy()])
    graphs = sorted(about["graphs"], key=lambda graph: graph not in compared)
    return {"name": shown(str(about.get("name") or about.get("source"))), "graphs": graphs}
