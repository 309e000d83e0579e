"""The tables of a graph: parts, roles, op types, phases, and what was inserted by others than the user."""

from collections.abc import Iterator
from itertools import islice

import pandas as pd

from nbkit.schema import EDGES, NODES, PARTS
from nbkit.trace.trace import Trace
from nbkit.views.sections.graph_outline import outline
from nbkit.views.sections.section import Section
from nbkit.views.summary import units
from nbkit.views.summary.names import shown

# Rows of the outline beside one of the other tables.
OUTLINE_PER_ROW = 4
INDENT = "\u2003"
# Nodes that hold values.
VALUES = ("parameter", "buffer", "constant")


def graph_sections(trace: Trace, count: int) -> list[Section]:
    """The outline, longer than the others, and the tables of totals."""
    totals = graph_totals(trace, count)
    return [parts_section(trace, OUTLINE_PER_ROW * count), *totals] if totals else []


def graph_totals(trace: Trace, count: int) -> list[Section]:
    """The tables without the outline, of `count` rows at most, but for graphs, roles and phases, which are few."""
    nodes = NODES.check(trace.frames.get("nodes", NODES.frame()))
    if not len(nodes):
        return []
    ops = nodes[nodes["kind"] == "op"]
    sections = [
        _graphs(trace, nodes),
        _roles(nodes, PARTS.check(trace.frames.get("parts", PARTS.frame()))),
        _counted(ops, "op", "Op types", "op type", count),
        _counted(nodes, "phase", "Phases", "phase", len(nodes)),
        _counted(nodes, "inserted", "Inserted", "inserted by", count),
    ]
    return [section for section in sections if section.rows]


def parts_section(trace: Trace, count: int) -> Section:
    """The first rows of the outline; what is below another stands further right."""
    rows = list(islice(outline(trace), count + 1))
    texts = [
        [INDENT * row.depth + row.title, row.type, row.role, row.phase, units.count(row.nodes), units.count(row.params),
         row.ops or None, row.result]
        for row in rows[:count]
    ]  # fmt: skip
    more = [["… more", *[None] * 7]] if len(rows) > count else []
    return Section(
        "Parts", "part", ("type", "role", "phase", "nodes", "parameters", "ops right in it", "result"), texts + more
    )


def _graphs(trace: Trace, nodes: pd.DataFrame) -> Section:
    """Per graph its nodes, ops, parameters and tensors; no row for the only one."""
    edges = EDGES.check(trace.frames.get("edges", EDGES.frame()))
    of_edge = nodes["graph"].to_numpy()[edges["dst"].to_numpy()] if len(edges) else []
    tensors = pd.Series(of_edge, dtype="object").value_counts()
    rows = [
        [shown(str(graph)), units.count(len(few)), units.count((few["kind"] == "op").sum()),
         units.count(few["kind"].isin(VALUES).sum()), units.count(tensors.get(graph, 0))]
        for graph, few in nodes.groupby("graph", sort=False)
    ]  # fmt: skip
    return Section(
        "Graphs", "graph", ("nodes", "ops", "parameters and constants", "edges"), rows if len(rows) > 1 else []
    )


def _roles(nodes: pd.DataFrame, parts: pd.DataFrame) -> Section:
    """Per role its parts and nodes, most parts first."""
    counts = pd.DataFrame({"parts": parts["role"].value_counts(), "nodes": nodes["role"].value_counts()}).fillna(0)
    ordered = counts.sort_values(["parts", "nodes"], ascending=False, kind="stable")
    return Section("Roles", "role", ("parts", "nodes"), list(_count_rows(ordered)))


def _counted(nodes: pd.DataFrame, column: str, title: str, noun: str, count: int) -> Section:
    """How many nodes there are of each text of a column, most first; ties keep their order."""
    counts = nodes[column].value_counts().head(count).to_frame()
    return Section(title, noun, ("nodes",), list(_count_rows(counts)))


def _count_rows(counts: pd.DataFrame) -> Iterator[list[str | None]]:
    for name, *numbers in counts.itertuples():
        yield [shown(str(name)), *(units.count(number) for number in numbers)]
