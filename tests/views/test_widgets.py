from nbkit.views.op_table.widget import OpTable
from nbkit.views.sections.graph import graph_sections
from nbkit.views.widgets import graph_and_ops, sections_and_ops
from tests.fake_graphs import training_graph
from tests.fakes import small_trace


def test_a_graph_stands_alone_where_no_ops_were_recorded() -> None:
    (graph,) = graph_and_ops(training_graph(1)).children
    assert type(graph).__name__ == "GraphView"


def test_tables_stand_above_the_op_table() -> None:
    trace = small_trace()
    trace.frames |= training_graph(1).frames
    tables, ops = sections_and_ops(trace, graph_sections).children
    assert "<caption>Parts</caption>" in tables.value
    assert isinstance(ops, OpTable)
