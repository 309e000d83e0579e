"""Builds the widget of a verb's traces: brief, picture, op table, linked. Only a notebook imports it."""

from collections.abc import Callable

from nbkit.trace.job.job import Job
from nbkit.trace.trace import Trace
from nbkit.views.alignment.graphs import graph_trace, has_graphs
from nbkit.views.alignment.verdicts import first_op_row, first_row, rows_of
from nbkit.views.alignment.widget import AlignmentTableModel
from nbkit.views.brief.brief import brief_of
from nbkit.views.brief.entry import Entry
from nbkit.views.brief.html import brief_html, finding_link
from nbkit.views.diff_table.widget import DiffTableModel
from nbkit.views.flamegraph.widget import FlameGraphModel
from nbkit.views.graph.widget import GraphModel, GraphView
from nbkit.views.linking import link, link_alignment, link_differences, link_graph
from nbkit.views.live.composite import CompositeWidget
from nbkit.views.live.model import WidgetModel
from nbkit.views.op_table.widget import OpTable, OpTableModel
from nbkit.views.sections.section import Section
from nbkit.views.sections.writers import to_html
from nbkit.views.statements.statement import LIVE
from nbkit.views.static_html.style import static_div
from nbkit.views.static_html.view import no_picture

ROWS = 10
FINDINGS = 5


def flame_and_ops(trace: Trace) -> CompositeWidget:
    """Puts the flame graph above the op table."""
    flame, table = FlameGraphModel(trace), OpTableModel(trace)
    link(flame, table)
    return CompositeWidget(trace, _brief(trace), flame, _opened(table))


def differences_and_ops(trace: Trace) -> CompositeWidget:
    """Puts the diff table above the op table."""
    differences, table = DiffTableModel(trace), OpTableModel(trace)
    link_differences(differences, table)
    links = [finding_link(entry) for entry in _wrong(trace)[:1]]
    rows = [link.value for link in links if link is not None and link.widget == differences.bundle]
    if rows:
        differences.selected_row = rows[0]
    else:
        _opened(table)
    return CompositeWidget(trace, _brief(trace), differences, table)


def graph_and_ops(trace: Trace) -> GraphView | CompositeWidget:
    """Puts the graph above the op table, where ops were recorded."""
    if not len(trace.frames.get("ops", ())):
        return GraphView(trace)
    graph, table = GraphModel(trace), OpTableModel(trace)
    link_graph(graph, table)
    return CompositeWidget(trace, _brief(trace), graph, _opened(table))


def alignment_and_graphs(trace: Trace) -> CompositeWidget:
    """Puts the table of both sides above their graphs, below the brief that says where they diverge."""
    table = AlignmentTableModel(trace)
    models: list[WidgetModel] = [table]
    if has_graphs(trace):
        graphs = GraphModel(graph_trace(trace))
        link_alignment(table, graphs)
        models.append(graphs)
    rows, first = rows_of(table.source.trace), first_row(trace)
    table.selected_row = (first_op_row(rows) or None) if first is None else first
    return CompositeWidget(trace, _brief(trace), *models)


def sections_and_flame(trace: Trace, html: str) -> CompositeWidget:
    """Puts the brief and this HTML above the flame graph."""
    return CompositeWidget(trace, _brief(trace, html), FlameGraphModel(trace))


def sections_alone(trace: Trace, sections: Callable[[Trace, int], list[Section]]) -> CompositeWidget:
    """Shows the brief and these sections, ten rows each, of a trace without ops."""
    return CompositeWidget(trace, _brief(trace, to_html(sections(trace, ROWS))))


def sections_and_ops(
    trace: Trace, sections: Callable[[Trace, int], list[Section]], picture: Callable[[Trace], str] = no_picture
) -> CompositeWidget:
    """Puts the brief, a picture and these sections, ten rows each, above the op table."""
    html = picture(trace) + to_html(sections(trace, ROWS))
    return CompositeWidget(trace, _brief(trace, html), _opened(OpTableModel(trace)))


def ranks_and_ops(trace: Trace, sections: Callable[[Trace, int], list[Section]]) -> CompositeWidget:
    """Puts the brief and the tables of a job above the op table of all its ranks, where there are ops."""
    tables = [OpTableModel(trace)] if isinstance(trace, Job) and trace.counts.get("ops") else []
    return CompositeWidget(trace, _brief(trace, to_html(sections(trace, ROWS))), *tables)


def ops_alone(trace: Trace) -> OpTable | CompositeWidget:
    """Shows the op table below the brief; alone where there is nothing to say."""
    above = _brief(trace)
    return CompositeWidget(trace, above, _opened(OpTableModel(trace))) if above else OpTable(trace)


def _opened(table: OpTableModel) -> OpTableModel:
    """Returns the table, opened at the op of the worst finding, else at the one at which the trace ended early."""
    trace = table.source.trace
    error = trace.meta.get("error")
    failed = error.get("op_id") if isinstance(error, dict) else None
    known = [entry.op_id for entry in _wrong(trace)] + [failed]
    table.selected_op_id = next((int(op) for op in known if op is not None and 0 <= op < len(trace.ops)), None)
    return table


def _wrong(trace: Trace) -> list[Entry]:
    """Returns the findings at which a table opens; a hint at what could be saved is none."""
    return [entry for entry in brief_of(trace).entries if entry.severity != "hint"]


def _brief(trace: Trace, tables: str = "") -> str:
    """Returns verdict, findings and tables as HTML; empty where there is nothing to say and no table."""
    brief = brief_of(trace)
    html = (brief_html(brief, FINDINGS, LIVE) if brief.verdict or brief.incomplete else "") + tables
    return static_div(html) if html else ""
