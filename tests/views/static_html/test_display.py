"""What Jupyter gets to show."""

import gc
import json
import subprocess
import sys
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import nbkit.verbs.registry
from nbkit.schema import REPLACED
from nbkit.trace.trace import Trace
from nbkit.views.host import outputs
from nbkit.views.host.outputs import WIDGET_VIEW
from nbkit.views.static_html import display
from nbkit.views.static_html.view import VIEWS
from tests.support.diff_frames import make_diffs
from tests.support.fakes import small_trace, timed_trace
from tests.views.alignment.makers import aligned_trace

CHECK = """
import sys, nbkit
from tests.support.fakes import small_trace, timed_trace
from nbkit.views.static_html import display
bundle, _ = display.mimebundle(small_trace())
assert sorted(bundle) == [display.BRIEF, "text/html", "text/markdown", "text/plain"], sorted(bundle)
assert "<svg" in display.mimebundle(timed_trace())[0]["text/html"]
slow = {"anywidget", "ipywidgets", "plotly", "matplotlib"} & set(sys.modules)
assert not slow, slow
"""


@pytest.fixture
def published(monkeypatch) -> list[Any]:
    """What a kernel's cell shows: the data of each output."""
    data: list[Any] = []
    publisher = SimpleNamespace(publish=lambda bundle, metadata=None: data.append(bundle))
    monkeypatch.setattr(outputs, "shell", lambda: SimpleNamespace(display_pub=publisher))
    monkeypatch.setattr(outputs, "cell_of_run", lambda: (None, ""))
    monkeypatch.setattr(display, "has_live_front_end", lambda: True)
    return data


@pytest.mark.cold
def test_without_a_kernel_the_twins_are_shown_and_nothing_slow_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_under_a_kernel_static_view_and_widget_are_two_outputs(published) -> None:
    trace = small_trace()
    trace._ipython_display_()
    first, second = published
    model = display._WIDGETS[trace]().model_id
    assert sorted(first) == [display.BRIEF, "text/html", "text/markdown", "text/plain"]
    assert second == {WIDGET_VIEW: {"version_major": 2, "version_minor": 1, "model_id": model}, "text/plain": ""}


def test_a_trace_has_one_widget_however_often_it_is_shown(published) -> None:
    trace = small_trace()
    for each in (trace, trace, small_trace()):
        each._ipython_display_()
    models = [bundle[WIDGET_VIEW]["model_id"] for bundle in published[1::2]]
    assert models[0] == models[1] != models[2]


def test_the_static_view_bears_the_class_that_its_widget_hides(published) -> None:
    trace = small_trace()
    trace._ipython_display_()
    name = display._WIDGETS[trace]().static_class
    assert published[0]["text/html"].startswith(f'<div class="nbkit-first {name}"><style>')
    assert display._WIDGETS[trace]().get_state()["static_class"] == name


def test_twins_are_the_summary_and_the_static_table() -> None:
    bundle, metadata = display.mimebundle(small_trace(name="step"))
    assert bundle["text/plain"].startswith("6 ops in 2 modules, 64 parameters.\n\n")
    assert "<table>" in bundle["text/html"]
    assert metadata == {}


def test_the_brief_stands_beside_them_as_markdown_and_as_json() -> None:
    trace = small_trace(name="step")
    bundle, _ = display.mimebundle(trace)
    assert bundle["text/markdown"] == trace.brief(form="markdown")
    assert bundle[display.BRIEF] == json.loads(trace.brief(form="json"))


def test_a_terminal_shows_the_text_and_a_page_the_html() -> None:
    """What IPython prints, and what nbconvert chooses: its order of preference, of which ours are in this bundle."""
    from nbconvert.exporters import HTMLExporter  # takes seconds, which every worker would wait for

    bundle, _ = display.mimebundle(small_trace())
    data, _ = InteractiveShell().display_formatter.format(small_trace(), include={"text/plain"})
    assert data == {"text/plain": bundle["text/plain"]}
    (first, *_) = [name for name in HTMLExporter().config.NbConvertBase.display_data_priority if name in bundle]
    assert first == "text/html"


def test_an_optime_trace_shows_flamegraph_and_op_table_linked(published) -> None:
    trace = timed_trace()
    trace._ipython_display_()
    view = published[1][WIDGET_VIEW]
    widget = display._WIDGETS[trace]()
    assert "100 µs per step (median of 5 runs, IQR 4.00 µs): " in widget.html
    assert view["model_id"] == widget.model_id
    flame, table = widget.models
    flame.selected_op_id = 2
    assert table.selected_op_id == 2


def test_widgets_do_not_keep_a_trace_alive(published) -> None:
    trace = timed_trace()
    trace._ipython_display_()
    gone = weakref.ref(trace)
    del trace
    gc.collect()
    assert gone() is None


def test_traces_of_another_verb_are_shown_as_tables_of_ops() -> None:
    assert "First 8 calls" in display.mimebundle(small_trace(verb="opsomething"))[0]["text/html"]


@pytest.mark.parametrize(
    ("trace", "parts"),
    [
        (timed_trace(), ["flamegraph", "op_table"]),
        (small_trace(verb="opdiff"), ["diff_table", "op_table"]),
        (small_trace(verb="opfallback"), ["op_table"]),
        (aligned_trace(graphs=True), ["diff_table", "graph"]),
    ],
)
def test_marimo_shows_a_new_widget_of_the_verb_each_time(trace, parts) -> None:
    trace.frames |= {"diffs": make_diffs({"op_id": 2}), "replaced": REPLACED.frame()}
    first, again = trace._display_(), trace._display_()
    assert first.parts == again.parts == parts
    assert first.model_id != again.model_id


def test_the_first_trace_of_a_process_is_shown_as_its_verb_shows_it(monkeypatch) -> None:
    trace = timed_trace()
    monkeypatch.setattr(nbkit.verbs, "registry", nbkit.verbs.registry)
    for shown in (trace.summary, lambda: trace._display_().parts):
        expected = shown()
        monkeypatch.delitem(sys.modules, "nbkit.verbs.registry")
        monkeypatch.delitem(VIEWS, "optime")
        assert shown() == expected


def test_marimo_shows_a_trace_that_still_records_as_text() -> None:
    assert Trace({}, {"name": "step"})._display_() == "<Trace 'step': still recording>"


def test_a_page_says_why_a_trace_is_not_whole() -> None:
    error = {"type": "ValueError", "message": "x < 2", "op_id": 7, "source": "Cell In[7], line 3"}
    html = display.mimebundle(small_trace(complete=False, error=error))[0]["text/html"]
    assert "<b>Incomplete</b>: ValueError: x &lt; 2 (at op 7, Cell In[7], line 3)" in html
    assert "Incomplete" not in display.mimebundle(small_trace())[0]["text/html"]
