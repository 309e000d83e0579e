"""Tests source lines of ops, from the frames of Python around them or from their own stacks."""

import nbkit
from tests.readers.exports import slice_, written


def sources(tmp_path, *events):
    ops = nbkit.load(written(tmp_path / "t.json", list(events))).ops
    return dict(zip(ops["op"], ops["source"].astype(object).where(ops["source"].notna(), None), strict=True))


def test_the_innermost_frame_of_the_user_counts(tmp_path):
    found = sources(
        tmp_path,
        slice_("python_function", "train.py(3): <module>", 0.0, 100.0),
        slice_("python_function", "net.py(8): forward", 10.0, 30.0),
        slice_("python_function", "torch/nn/functional.py(9): linear", 11.0, 20.0),
        slice_("cpu_op", "aten::linear", 12.0, 10.0),
        slice_("cpu_op", "aten::mm", 13.0, 5.0),
        slice_("cpu_op", "aten::sum", 50.0, 5.0),
        slice_("cpu_op", "aten::add", 50.0, 5.0, tid=8),
    )
    assert found == {"aten.linear": "net.py:8", "aten.mm": "net.py:8", "aten.sum": "train.py:3", "aten.add": None}


def test_a_stack_of_its_own_counts_first(tmp_path):
    stack = "torch/nn/functional.py(9): linear;nn.Module: Linear_0;net.py(8): forward;train.py(3): <module>"
    assert sources(tmp_path, slice_("cpu_op", "aten::mm", 1.0, 5.0, Call_stack=stack)) == {"aten.mm": "net.py:8"}


def test_modules_are_rows(tmp_path):
    events = (
        slice_("python_function", "nn.Module: Net_0", 0.0, 10.0),
        slice_("python_function", "nn.Module: Linear_12", 1.0, 6.0),
        slice_("cpu_op", "aten::mm", 2.0, 4.0),
    )
    ops = nbkit.load(written(tmp_path / "t.json", list(events))).ops
    assert ops[["level", "op", "self_time_us"]].to_numpy().tolist() == [
        ["module", "Net", 4.0],
        ["module", "Linear", 2.0],
        ["aten", "aten.mm", 4.0],
    ]
    assert ops["phase"].tolist() == ["forward"] * 3
