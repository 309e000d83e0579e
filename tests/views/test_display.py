"""What Jupyter gets to show."""

import subprocess
import sys

from nbkit.views import display
from tests.fakes import small_trace

CHECK = """
import sys, nbkit
from tests.fakes import small_trace
from nbkit.views import display
bundle, _ = display.mimebundle(small_trace())
assert sorted(bundle) == ["text/html", "text/plain"], sorted(bundle)
slow = {"anywidget", "ipywidgets", "plotly", "matplotlib"} & set(sys.modules)
assert not slow, slow
"""


def test_without_a_kernel_the_twins_are_shown_and_nothing_slow_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_under_a_kernel_the_view_of_one_widget_comes_with_its_twins(monkeypatch) -> None:
    monkeypatch.setattr(display, "_has_live_front_end", lambda: True)
    trace = small_trace()
    bundle, _ = display.mimebundle(trace)
    assert sorted(bundle) == [display.WIDGET_VIEW, "text/html", "text/plain"]
    assert display.mimebundle(trace)[0][display.WIDGET_VIEW] == bundle[display.WIDGET_VIEW]
    assert display.mimebundle(small_trace())[0][display.WIDGET_VIEW] != bundle[display.WIDGET_VIEW]


def test_twins_are_the_summary_and_the_static_table() -> None:
    bundle, metadata = display.mimebundle(small_trace(name="step"))
    assert bundle["text/plain"].startswith("optrace step: 8 ops")
    assert "<table>" in bundle["text/html"]
    assert metadata == {}
