"""The flamegraph widget's Python side."""

import numpy as np
import pytest
from traitlets import TraitError

from nbkit.views.flamegraph import STATIC, FlameGraph
from tests.fakes import small_trace, timed_trace


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
    with pytest.raises(TraitError, match="There is no op 9; this flamegraph has 9 ops"):
        flame.selected_op_id = 9


@pytest.mark.parametrize("name", ["flamegraph.js", "flamegraph.css"])
def test_bundle_loads_nothing(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8")
    assert len(text) > 5_000
    assert not any(mark in text for mark in ("://", "innerHTML", "insertAdjacentHTML", "eval(", "import(", "@import"))
