import pytest
import torch

import nbkit
from nbkit.findings.finding import Finding, findings_frame
from nbkit.schema import NODES
from nbkit.trace.trace import Trace
from nbkit.verbs.opcheck import check_sections
from nbkit.views.graph.widget import GraphView
from nbkit.views.op_table.widget import OpTableModel
from nbkit.views.sections.graph.graph import graph_sections
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.view import view_of
from nbkit.views.widgets import differences_and_ops, flame_and_ops, graph_and_ops, ops_alone, sections_and_ops
from tests.support.diff_frames import make_diffs
from tests.support.fake_graphs import training_graph
from tests.support.fakes import small_trace


def test_a_graph_stands_alone_where_no_ops_were_recorded() -> None:
    assert isinstance(graph_and_ops(training_graph(1)), GraphView)
    trace = nbkit.opgraph(torch.nn.Linear(2, 2))
    assert isinstance(view_of(trace).widget(trace), GraphView)


@pytest.mark.parametrize(
    ("build", "above", "selected"),
    [
        (flame_and_ops, "FlameGraphModel", {"selected_op_id": 2}),
        (differences_and_ops, "DiffTableModel", {"selected_row": 0}),
        (graph_and_ops, "GraphModel", {"selected_op_id": 2}),
    ],
)
def test_a_picture_stands_above_the_op_table_and_is_linked_with_it(build, above, selected) -> None:
    trace = small_trace()
    trace.frames |= {"nodes": NODES.frame(), "diffs": make_diffs({"op_id": 2})}
    picture, table = build(trace).models
    assert (type(picture).__name__, type(table).__name__) == (above, "OpTableModel")
    picture.set_trait(*next(iter(selected.items())))
    assert table.selected_op_id == 2


def test_tables_stand_above_the_op_table() -> None:
    trace = small_trace()
    trace.frames |= training_graph(1).frames
    widget = sections_and_ops(trace, graph_sections)
    assert "<caption>Parts</caption>" in widget.html
    (ops,) = widget.models
    assert isinstance(ops, OpTableModel)


def with_finding(severity: str = "error", **finding: object) -> Trace:
    trace = small_trace(verb="opcheck", checked_tensors=3)
    trace.frames["diffs"] = make_diffs({"op_id": 3}, {"op_id": 2, "status": "mismatch"})
    trace.frames["findings"] = findings_frame([Finding("nan", severity, "So it is", "", op_id=6, **finding)])
    return trace


def test_the_op_table_opens_at_the_worst_finding_and_its_words_lead_there() -> None:
    for build in (flame_and_ops, lambda trace: sections_and_ops(trace, check_sections), ops_alone):
        widget = build(with_finding())
        assert widget.models[-1].selected_op_id == 6
        assert '<button type="button" data-widget="op_table" data-value="6">see the op</button>' in widget.html
        assert build(with_finding("hint")).models[-1].selected_op_id is None
    assert "<button" not in static_table(with_finding())


def test_the_diff_table_opens_at_the_row_of_the_finding_and_the_op_table_at_its_op() -> None:
    differences, table = differences_and_ops(with_finding(evidence={"diffs_rows": [1]})).models
    assert (differences.selected_row, table.selected_op_id) == (1, 2)


def test_a_step_that_ended_early_opens_where_it_did() -> None:
    error = {"type": "ValueError", "message": "no", "op_id": 5, "source": "train.py:7"}
    assert ops_alone(small_trace(complete=False, error=error)).models[0].selected_op_id == 5
    assert ops_alone(small_trace(complete=False, error={**error, "op_id": 99})).models[0].selected_op_id is None
    assert ops_alone(small_trace(complete=False, error="a crash")).models[0].selected_op_id is None
