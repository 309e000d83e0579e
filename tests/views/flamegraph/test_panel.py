from nbkit.views.flamegraph.panel import flame_panel
from nbkit.views.panels.panel import Contents
from tests.support.fakes import timed_trace


def test_where_no_script_runs_a_picture_stands_in() -> None:
    panel = flame_panel(Contents(timed_trace()))
    assert (panel.widget, panel.title) == ("flamegraph", "Flame graph")
    assert panel.data
    assert panel.static.count("<svg") == 1 and "aten.mm.default" in panel.static


def test_against_a_base_the_still_view_says_what_changed() -> None:
    panel = flame_panel(Contents(timed_trace(), timed_trace(name="before")))
    assert panel.static != flame_panel(Contents(timed_trace())).static
    assert panel.data != flame_panel(Contents(timed_trace())).data
