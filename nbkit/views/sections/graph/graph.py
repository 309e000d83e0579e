"""The tables of a graph: parts, roles, op types, phases, and what was inserted by others than the user."""

from itertools import islice

import pandas as pd

from nbkit.schema import EDGES, NODES, PARTS
from nbkit.trace.trace import Trace
from nbkit.views.sections.graph.outline import outline
from nbkit.views.sections.graph.run import run_sections
from nbkit.views.sections.section import Section, columns

# Rows of the outline beside one of the other tables.
OUTLINE_PER_ROW = 4
INDENT = "\u2003"
# Nodes that hold values.
VALUES = ("parameter", "buffer", "constant")
PART = columns("part, type, role, phase: phase, nodes: count, parameters: count, direct ops, result")


def graph_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the outline, longer than the others, and the tables of totals."""
    outline_rows = parts_section(trace, OUTLINE_PER_ROW * count)
    return [outline_rows, *graph_totals(trace, count)] if outline_rows.rows else []


def graph_totals(trace: Trace, count: int) -> list[Section]:
    """Returns all tables but the outline, of `count` rows at most except graphs, roles and phases."""
    nodes = NODES.check(trace.frames.get("nodes", NODES.frame()))
    if not len(nodes):
        return []
    ops = nodes[nodes["kind"] == "op"]
    sections = [
        _graphs(trace, nodes),
        _roles(nodes, PARTS.check(trace.frames.get("parts", PARTS.frame()))),
        _counted(ops, "op", "Op types", "op type", count),
        _counted(nodes, "phase", "Phases", "phase: phase", len(nodes)),
        _counted(nodes, "inserted", "Inserted", "inserted by", count),
        *run_sections(trace, count),
    ]
    return [section for section in sections if section.rows]


def parts_section(trace: Trace, count: int) -> Section:
    """Returns the first rows of the outline, indented by depth."""
    rows = list(islice(outline(trace), count + 1))
    values = [
        [INDENT * row.depth + row.title, row.type, row.role, row.phase, row.nodes, row.params, row.ops, row.result]
        for row in rows[:count]
    ]
    return Section("Parts", PART, values, "and more parts" if len(rows) > count else "")


def skipped_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the lines of a dump that could not be read."""
    skipped = trace.meta.get("skipped_lines") or []
    rows = [[line.get("line"), line.get("reason"), line.get("text")] for line in skipped[:count]]
    kinds = columns("line: id, what happened: sentence, text")
    return [Section("Not read", kinds, rows)] if rows else []


def _graphs(trace: Trace, nodes: pd.DataFrame) -> Section:
    """Returns for each graph its nodes, ops, parameters and tensors; no row for the only one."""
    edges = EDGES.check(trace.frames.get("edges", EDGES.frame()))
    of_edge = nodes["graph"].to_numpy()[edges["dst"].to_numpy()] if len(edges) else []
    tensors = pd.Series(of_edge, dtype="object").value_counts()
    rows = [
        [graph, len(few), (few["kind"] == "op").sum(), few["kind"].isin(VALUES).sum(), tensors.get(graph, 0)]
        for graph, few in nodes.groupby("graph", sort=False)
    ]
    kinds = columns("graph, nodes: count, ops: count, parameters and constants: count, edges: count")
    return Section("Graphs", kinds, rows if len(rows) > 1 else [])


def _roles(nodes: pd.DataFrame, parts: pd.DataFrame) -> Section:
    """Returns for each role its parts and nodes, most parts first."""
    counts = pd.DataFrame({"parts": parts["role"].value_counts(), "nodes": nodes["role"].value_counts()}).fillna(0)
    ordered = counts.sort_values(["parts", "nodes"], ascending=False, kind="stable")
    return Section("Roles", columns("role, parts: count, nodes: count"), [*ordered.itertuples(name=None)])


def _counted(nodes: pd.DataFrame, column: str, title: str, noun: str, count: int) -> Section:
    """Returns how many nodes there are of each text of a column, most first; ties keep their order."""
    counts = nodes[column].value_counts().head(count)
    return Section(title, columns(f"{noun}, nodes: count"), list(counts.items()))
