"""Arrows of a Chrome trace, from forward ops to backward nodes."""

from nbkit.readers.chrome.flows import Flows, innermost_at, nodes_around
from nbkit.readers.chrome.ranks import Ranks
from nbkit.timeline.names import BACKWARD_NODE
from tests.timeline.makers import RUNTIME, events

NODE = f"{BACKWARD_NODE}MmBackward0"
TABLE = events(
    {"name": "aten::linear", "start": 10, "end": 60},
    {"name": "aten::mm", "start": 10, "end": 40},
    {"name": "launch", "start": 10, "end": 12, "kind": RUNTIME},
    {"name": "aten::mm", "start": 10, "end": 11, "thread": 3},
    {"name": NODE, "start": 100, "end": 200, "thread": 2},
    {"name": NODE, "start": 120, "end": 150, "thread": 2},
    {"name": NODE, "start": 300, "end": 310, "thread": 2},
    {"name": NODE, "start": 120, "end": 125, "thread": 2, "kind": RUNTIME},
)
RANKS = Ranks(TABLE, [7] * 10)  # of one process


def test_arrows_lead_from_the_innermost_op_to_the_node_around_their_end() -> None:
    flows = Flows()
    flows.add("f", 2, (2, 110, 0))
    flows.add("s", 2, (1, 10, 0))
    flows.add("s", 3, (3, 10, 0))
    flows.add("f", 3, (2, 150, 0))
    flows.add("t", 2, (2, 305, 0))
    flows.add("f", 4, (2, 305, 0))  # without a beginning
    flows.add("s", 5, (3, 11, 0))  # at which nothing begins
    flows.add("f", 5, (2, 300, 0))
    forward = flows.forward(TABLE, RANKS)
    assert forward is not None
    assert forward.tolist() == [-1, -1, -1, -1, 1, 3, -1, -1]


def test_an_arrow_into_nothing_changes_nothing() -> None:
    flows = Flows()
    flows.add("s", 1, (1, 10, 0))
    assert flows.forward(TABLE, RANKS) is None
    for time in (99, 201, 400):
        flows.add("f", 1, (2, time, 0))
    flows.add("f", 1, (9, 110, 0))
    forward = flows.forward(TABLE, RANKS)
    assert forward is not None
    assert forward.tolist() == [-1] * 8


def test_the_shortest_event_that_begins_at_a_point_is_its_own() -> None:
    assert innermost_at(TABLE, {(1, 10), (3, 10), (1, 11), (2, 100)}) == {(1, 10): 1, (3, 10): 3, (2, 100): 4}


def test_the_node_around_a_point_is_the_one_that_began_last() -> None:
    points = [(2, 100), (2, 119), (2, 120), (2, 150), (2, 200), (2, 310), (2, 311), (1, 120), (2, 99)]
    assert nodes_around(TABLE, points) == [4, 4, 5, 5, -1, 6, -1, -1, -1]


def test_nodes_may_stand_in_any_order() -> None:
    table = events(
        {"name": NODE, "start": 50, "end": 60, "thread": 2},
        {"name": NODE, "start": 10, "end": 20, "thread": 2},
        {"name": NODE, "start": 10, "end": 40, "thread": 2},  # around the one before
    )
    assert nodes_around(table, [(2, 55), (2, 15)]) == [0, 1]
