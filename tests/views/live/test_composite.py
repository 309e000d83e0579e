"""Several models in one widget: their traits, messages and static views."""

from typing import Any

import pytest

from nbkit.views.flamegraph.widget import FlameGraphModel
from nbkit.views.linking import link
from nbkit.views.live.composite import CompositeWidget
from nbkit.views.op_table.widget import OpTableModel
from tests.support.fakes import timed_trace


@pytest.fixture
def widget(monkeypatch) -> CompositeWidget:
    trace = timed_trace()
    flame, table = FlameGraphModel(trace), OpTableModel(trace)
    link(flame, table)
    return CompositeWidget(trace, "<p>brief</p>", flame, table)


@pytest.fixture
def sent(widget, monkeypatch) -> list[Any]:
    messages: list[Any] = []
    monkeypatch.setattr(widget, "send", messages.append)
    return messages


def test_its_state_has_the_traits_of_each_by_name(widget) -> None:
    state = widget.get_state()
    assert (state["html"], state["parts"]) == ("<p>brief</p>", ["flamegraph", "op_table"])
    assert state["op_table_overview"]["n_ops"] == state["flamegraph_flame"]["count"] == 9
    assert "source" not in state and "op_table_source" not in state


def test_what_the_front_end_sets_reaches_the_models_and_back(widget) -> None:
    flame, table = widget.models
    widget.set_state({"flamegraph_selected_op_id": 3})
    assert (flame.selected_op_id, table.selected_op_id, widget.op_table_selected_op_id) == (3, 3, 3)
    widget.set_state({"flamegraph_selection": {"label": "two", "ids": b"\1\0\0\0\2\0\0\0"}})
    assert widget.op_table_within["label"] == "two (2 ops)"
    widget.set_state({"op_table_within": None})
    assert widget.flamegraph_selection is None


def test_two_widgets_of_one_kind_have_values_of_their_own(widget) -> None:
    trace = timed_trace()
    other = CompositeWidget(trace, "", OpTableModel(trace))
    other.models[0].selected_op_id = 5
    assert (other.op_table_selected_op_id, widget.op_table_selected_op_id) == (5, None)
    assert not hasattr(other, "flamegraph_flame")


def test_a_message_to_a_part_is_answered_by_its_model(widget, sent) -> None:
    widget._reply(None, {"part": "op_table", "content": {"kind": "rows", "id": "1"}}, [])
    ((name, answer),) = [tuple(message.values()) for message in sent]
    assert (name, answer["id"], len(answer["rows"])) == ("op_table", "1", 9)


def test_a_message_to_no_part_is_not_answered(widget, sent) -> None:
    widget._reply(None, {"part": "graph", "content": {"kind": "rows", "id": "1"}}, [])
    assert sent == []


def test_it_has_the_static_views_of_the_trace(widget) -> None:
    data, _ = widget._repr_mimebundle_()
    assert "<svg" in data["text/html"]
    assert "\n\noptime: " in data["text/plain"]
