"""What a trace of two executions shows: its summary, its widget, its panels and its report."""

from itertools import pairwise
from pathlib import Path

import pytest

from nbkit.views.alignment.graphs import row_nodes
from nbkit.views.alignment_view import ALIGNMENT_VIEW, alignment_panels, pairs_section
from nbkit.views.panels.panel import Contents
from nbkit.views.report.opreport import opreport
from nbkit.views.static_html.text import summary
from nbkit.views.static_html.view import VIEWS
from nbkit.views.widgets import alignment_and_graphs
from tests.views.alignment.large import large_trace
from tests.views.alignment.makers import aligned_trace

# In two parts, as no file of the repository names a path of a machine.
HOME = "/" + "home"


@pytest.fixture(autouse=True)
def known_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VIEWS, "opalign", ALIGNMENT_VIEW)


def test_the_summary_begins_with_the_first_divergence_and_has_the_tables() -> None:
    lines = summary(aligned_trace()).split("\n")
    figures = "opalign decoder against decoder.onnx: 31 left results, 34 right results, torch 2.13.0"
    assert figures in lines
    assert lines[0].startswith("First difference: model.layers.0.self_attn (aten._softmax.default): the result of")
    heads = [line.split("  ")[0] for before, line in pairwise(lines) if not before]
    assert heads[1:6] == ["worst pairs", "modules", "on the left only", "on the right only", "results by mark"]


def test_the_widget_has_the_table_above_the_graphs_and_linked_with_them() -> None:
    widget = alignment_and_graphs(aligned_trace(graphs=True))
    assert widget.parts == ["diff_table", "graph"]
    table, graph = widget.models
    assert table.selected_row == 20  # where both diverge
    table.selected_row = None
    table.selected_row = 20
    assert graph.selected_node_id == row_nodes(aligned_trace(graphs=True)).left[20]
    widget = alignment_and_graphs(aligned_trace())
    assert widget.parts == ["diff_table"]
    assert "First difference: " in widget.html


def test_where_both_agree_the_table_opens_behind_inputs_weights_and_constants() -> None:
    trace = aligned_trace(diverge=False)
    (row,) = {alignment_and_graphs(trace).models[0].selected_row, trace.alignment["kind"].tolist().index("op")}
    assert row > 0
    section = pairs_section(trace, 5)
    assert section.rows[0][0] == row
    assert [column.label for column in section.columns[4:]][::2] == ["left op", "right op", "dtype"]


def test_panels_are_the_table_and_the_graphs() -> None:
    panels = alignment_panels(Contents(aligned_trace(graphs=True)))
    assert [(panel.widget, panel.title) for panel in panels] == [
        ("alignment_table", "Results of both side by side"),
        ("graph", "Graphs of both"),
    ]
    assert [panel.widget for panel in alignment_panels(Contents(aligned_trace()))] == ["alignment_table"]


def test_where_no_script_runs_the_rows_around_the_first_divergence_stand() -> None:
    section = pairs_section(large_trace(1000), 10)
    assert [row[0] for row in section.rows] == list(range(502, 512))
    assert section.rows[5][2] == "diverges first"
    assert section.caption == "rows 502 to 511 of 1,000"


def test_the_report_has_statement_table_graphs_and_tables_and_no_path(tmp_path: Path) -> None:
    trace = aligned_trace(graphs=True)
    rows = trace.alignment.assign(right_source=f"{HOME}/ann/models/decoder.py:4").astype(trace.alignment.dtypes)
    trace.frames["alignment"] = rows
    text = opreport(trace, path=tmp_path / "report.html").read_text(encoding="utf-8")
    places = [text.index(part) for part in ("First difference: ", 't1-alignment_table"', 't1-graph"', "Worst pairs")]
    assert places == sorted(places)
    assert f"{HOME}/ann" not in text
    assert 'data-widget="alignment_table" data-value="20"' in text


def test_a_trace_without_results_says_so() -> None:
    trace = aligned_trace()
    trace.frames["alignment"] = trace.alignment.iloc[:0]
    assert "No results were compared." in summary(trace)
