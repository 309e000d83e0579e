"""The widget's Python side."""

import numpy as np
import pandas as pd
import pytest
from traitlets import TraitError

from nbkit.views.live.widget import STATIC
from nbkit.views.op_table.widget import OpTable
from tests.support.fakes import fake_trace, small_trace

RELU = {"predicates": [{"column": "op", "op": "contains", "value": "relu"}]}


def test_questions_are_answered_to_the_front_end() -> None:
    table = OpTable(small_trace())
    sent: list[dict[str, object]] = []
    table.send = lambda answer: sent.append(answer)  # type: ignore[method-assign]
    table._handle_custom_msg({"kind": "rows", "id": "view-1", "query": RELU}, [])
    assert [(answer["id"], answer["matched"]) for answer in sent] == [("view-1", 1)]


def test_state_stays_small_and_holds_no_rows() -> None:
    state = OpTable(fake_trace(30_000)).get_state()
    code = {name: state.pop(name) for name in ("_esm", "_css")}
    assert sum(len(str(text)) for text in code.values()) < 60_000
    assert len(str(state)) < 4_000


def test_selection_must_be_an_op_of_the_trace() -> None:
    table = OpTable(small_trace())
    table.selected_op_id = 7
    table.selected_op_id = None
    with pytest.raises(TraitError, match="There is no op 8; the ops of this trace are 0 to 7"):
        table.selected_op_id = 8


@pytest.mark.parametrize("name", ["op_table.js", "op_table.css"])
def test_bundle_loads_nothing(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8")
    assert len(text) > 5_000
    assert not any(mark in text for mark in ("://", "innerHTML", "insertAdjacentHTML", "eval(", "import(", "@import"))


def test_alone_it_shows_the_widget_with_its_text_and_html_twins() -> None:
    table = OpTable(small_trace(name="step"))
    data, _ = table._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == table.model_id
    assert data["text/plain"].startswith("6 ops in 2 modules, 64 parameters.")
    assert "<caption>Slowest ops</caption>" in data["text/html"]


def test_filtered_is_what_is_shown_now() -> None:
    table = OpTable(small_trace())
    ops = table.source.trace.ops
    pd.testing.assert_frame_equal(table.filtered, ops)
    query = {
        "predicates": [{"column": "level", "op": "equals", "value": "aten"}],
        "sort": [{"column": "self_time_us", "descending": True}],
    }
    table.source.answer({"kind": "rows", "query": query})
    pd.testing.assert_frame_equal(
        table.filtered, ops[ops["level"] == "aten"].sort_values("self_time_us", ascending=False)
    )
    table.show_within("frame", np.array([1, 2]))
    assert table.filtered["op_id"].tolist() == [1, 2]
    table.show_all()
    table.source.answer({"kind": "rows", "query": {"sort": [{"column": "speed"}]}})
    assert len(table.filtered) == 6
