"""The flame graph widget's Python side."""

import numpy as np
import pytest
from traitlets import TraitError

from nbkit.views.flamegraph.widget import FlameGraph
from nbkit.views.live.widget import STATIC
from tests.support.fakes import make_ops, make_trace, small_trace, timed_trace


def test_base_is_the_state_of_another_trace() -> None:
    flame = FlameGraph(timed_trace(name="after"), base=timed_trace(name="before"))
    assert (flame.flame["title"], flame.base["title"]) == ("optime after", "optime before")
    assert FlameGraph(small_trace()).base is None


def test_selected_ids_are_those_of_the_selection() -> None:
    flame = FlameGraph(timed_trace())
    assert flame.selected_ids() is None
    ids = memoryview(np.array([3, 2, 2, 99, -1], np.int32).tobytes())
    flame.selection = {"label": "aten.mm", "ids": ids}
    assert flame.selected_ids().tolist() == [2, 3]


def test_selection_must_be_an_op_of_the_trace() -> None:
    flame = FlameGraph(timed_trace())
    flame.selected_op_id = 8
    with pytest.raises(TraitError, match="There is no op 9; this flame graph has 9 ops"):
        flame.selected_op_id = 9


@pytest.mark.parametrize("name", ["flamegraph.js", "flamegraph.css"])
def test_bundle_loads_nothing(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8")
    assert len(text) > 5_000
    assert not any(mark in text for mark in ("://", "innerHTML", "insertAdjacentHTML", "eval(", "import(", "@import"))


def test_alone_it_shows_the_widget_with_its_text_and_html_twins() -> None:
    flame = FlameGraph(timed_trace(name="step"))
    data, _ = flame._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == flame.model_id
    assert "\n\noptime step: 4 aten ops" in data["text/plain"]
    assert "<svg" in data["text/html"] and "<caption>Slowest ops</caption>" in data["text/html"]


def test_a_difference_shows_what_changed_in_its_twins() -> None:
    data, _ = FlameGraph(timed_trace(name="after"), base=timed_trace(name="before"))._repr_mimebundle_()
    lines = data["text/plain"].splitlines()
    assert lines[0] == "optime after compared with optime before: 125 µs in all, was 125 µs"
    assert lines[2].split() == [
        "what",
        "changed,",
        "by",
        "module",
        "phase",
        "before",
        "now",
        "change",
        "noise",
        "verdict",
    ]
    assert "<caption>What changed, by module</caption>" in data["text/html"]


def test_without_ops_the_twins_say_so() -> None:
    empty = make_trace(make_ops())
    for base in (None, timed_trace()):
        data, _ = FlameGraph(empty, base=base)._repr_mimebundle_()
        assert "No op was recorded." in data["text/plain"] and "No op was recorded." in data["text/html"]
