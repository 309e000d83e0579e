"""The boxes of a still flame graph."""

from nbkit.views.flamegraph.boxes import flame_boxes
from tests.support.fakes import fake_trace, make_ops, timed_trace


def test_equal_paths_are_one_box_and_the_heaviest_stands_left() -> None:
    boxes = flame_boxes(timed_trace().ops)
    assert list(boxes.itertuples(index=False, name=None)) == [
        ("step", "other", 1, 0, 0.0, 100.0, 10.0),
        ("torch.autograd.backward", "backward", 1, 1, 0.0, 40.0, 40.0),
        ("aten.mm.default", "backward", 1, 0, 100.0, 30.0, 30.0),
        ("Linear", "forward", 1, 1, 40.0, 30.0, 4.0),
        ("aten.mm.default", "forward", 1, 2, 40.0, 26.0, 20.0),
        ("aten.add_.Tensor", "optimizer", 2, 1, 70.0, 15.0, 15.0),
        ("cudaLaunchKernel", "forward", 1, 3, 40.0, 6.0, 6.0),
    ]


def test_only_the_widest_are_kept_with_what_they_stand_on() -> None:
    assert flame_boxes(timed_trace().ops, 2)["op"].tolist() == ["step", "torch.autograd.backward"]
    assert len(flame_boxes(fake_trace(9_000).ops, 10)) == 10


def test_every_box_lies_on_another() -> None:
    boxes = flame_boxes(fake_trace(9_000).ops, 400)
    upper = boxes[boxes["depth"] == 1]
    lower = boxes[boxes["depth"] == 0]
    for left_us, total_us in zip(upper["left_us"], upper["total_us"], strict=True):
        over = (lower["left_us"] <= left_us) & (left_us + total_us <= lower["left_us"] + lower["total_us"] + 1e-6)
        assert over.sum() == 1


def test_a_box_that_seems_wider_than_the_one_below_does_not_float() -> None:
    rows = ({"op": "a", "total_time_us": 1.0}, {"op": "b", "parent_id": 0, "total_time_us": 5.0}, {"op": "c"})
    assert flame_boxes(make_ops(*rows), 1)["op"].tolist() == []


def test_a_range_with_the_name_of_a_module_has_a_box_of_its_own() -> None:
    boxes = flame_boxes(make_ops({"op": "Net", "level": "module"}, {"op": "Net", "level": "range"}, {"op": "Net"}))
    assert boxes["calls"].tolist() == [1, 1, 1]


def test_no_ops_have_no_boxes() -> None:
    assert len(flame_boxes(make_ops())) == 0


def test_what_another_thread_does_has_boxes_of_its_own() -> None:
    """The backward pass runs on a thread of its own while the call that started it waits."""
    call = {"op": "call", "total_time_us": 10.0, "self_time_us": 10.0}
    beside = {"op": "mm", "parent_id": 0, "thread": 1, "total_time_us": 8.0, "self_time_us": 6.0}
    inside = {"op": "launch", "parent_id": 1, "thread": 1, "total_time_us": 2.0, "self_time_us": 2.0}
    boxes = flame_boxes(make_ops(call, beside, inside))
    assert boxes[["op", "depth", "left_us"]].to_numpy().tolist() == [["call", 0, 0], ["mm", 0, 10], ["launch", 1, 10]]
