from nbkit.views.graph.panel import graph_panel
from nbkit.views.panels.panel import Contents
from tests.support.fake_graphs import training_graph


def test_where_no_script_runs_the_parts_are_listed() -> None:
    panel = graph_panel(Contents(training_graph(1)))
    assert (panel.widget, panel.title) == ("graph", "Graph")
    assert panel.data
    assert "<caption>Parts</caption>" in panel.static and "embed_tokens" in panel.static
