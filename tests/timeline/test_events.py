"""Events as columns: chosen, joined, and asked for by name."""

from dataclasses import fields

import numpy as np

from nbkit.timeline.events import Events
from tests.timeline.makers import HOST, KERNEL, MODULE, events

NODE = {"name": "aten::mm", "start": 10, "end": 30}


def plain(table: Events) -> dict[str, object]:
    """The columns that are known, as lists."""
    known = {field.name: getattr(table, field.name) for field in fields(table)}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in known.items()
        if value is not None
    }


def test_chosen_events_keep_their_columns_and_count_forward_anew() -> None:
    table = events(
        NODE, {**NODE, "name": "b", "start": 5}, {**NODE, "name": "c"}, origin_ns=3, forward=np.array([-1, 0, 1])
    )
    assert plain(table.at(np.array([2, 1]))) == {
        "name": ["c", "b"],
        "kind": [HOST] * 2,
        "start_ns": [10, 5],
        "duration_ns": [20, 25],
        "thread": [1, 1],
        "forward": [1, -1],
        "origin_ns": 3,
    }


def test_joined_events_fill_up_what_one_side_does_not_know() -> None:
    first = events({**NODE, "overload": "out", "own_id": 4, "flops": 8}, forward=np.array([-1]), origin_ns=0)
    second = events({**NODE, "kind": KERNEL, "stream": 7, "device": "cuda:0"}, origin_ns=9, main_thread=2)
    assert plain(first.and_more(second)) == {
        "name": ["aten::mm"] * 2,
        "kind": [HOST, KERNEL],
        "start_ns": [10, 10],
        "duration_ns": [20, 20],
        "thread": [1, 1],
        "overload": ["out", None],
        "own_id": [4, 0],
        "flops": [8, -1],
        "stream": [-1, 7],
        "device": [None, "cuda:0"],
        "origin_ns": 0,
        "main_thread": 2,
    }


def test_names_are_asked_of_host_events_that_were_not_named_by_hand() -> None:
    table = events(
        {**NODE, "block": 0},
        {**NODE, "kind": MODULE, "block": 0},
        {**NODE, "block": 1},
        {**NODE, "name": "mine", "block": -1},
    )
    assert table.named(lambda name: name == "aten::mm").tolist() == [True, False, True, False]
    assert table.called(lambda name: name == "aten::mm").tolist() == [True, False, False, False]
    assert table.is_dispatcher_call.tolist() == [True, False, False, False]
    assert table.name_codes[0].tolist() == [0, 0, 0, 1]
    assert len(table) == 4
    assert table.integers("own_id").tolist() == [0] * 4
    assert table.integers("flops").tolist() == [-1] * 4
    assert list(table.texts("source")) == [None] * 4
