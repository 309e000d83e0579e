import pytest
import torch

import nbkit
from nbkit.schema import NODES
from nbkit.views.graph.widget import GraphView
from nbkit.views.op_table.widget import OpTableModel
from nbkit.views.sections.graph.graph import graph_sections
from nbkit.views.static_html.view import view_of
from nbkit.views.widgets import differences_and_ops, flame_and_ops, graph_and_ops, sections_and_ops
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
