from nbkit.views.diff_table.panel import diff_panel
from nbkit.views.panels.panel import Contents
from tests.support.diff_traces import large_diffs


def test_where_no_script_runs_the_worst_differences_stand_first() -> None:
    panel = diff_panel(Contents(large_diffs(12)))
    assert (panel.widget, panel.title) == ("diff_table", "Differences, worst first")
    assert panel.data
    assert "<caption>Worst differences</caption>" in panel.static
    assert panel.static.count("mismatch") == 2
