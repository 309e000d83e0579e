"""Ops that return a number or a bool are compared with the same op on the CPU."""

from collections.abc import Iterator

import pytest
import torch

import nbkit
from tests.support.simulated import simulated_device

ITEM, EQUAL = "aten._local_scalar_dense.default", "aten.equal.default"


def numbers(trace):
    rows = trace.diffs[trace.diffs["op"].isin([ITEM, EQUAL])]
    return [*zip(rows["op"], rows["status"], rows["message"].fillna(""), strict=True)]


@pytest.fixture
def wrong_once() -> Iterator[None]:
    """Has torch.equal be wrong once, and right when the reference asks again."""
    answers = iter([False, True])
    library = torch.library.Library("aten", "IMPL")
    library.impl("equal", lambda left, right: next(answers), "CPU", allow_override=True)
    yield
    library._destroy()


def test_items_of_every_kind_are_right():
    values = [torch.tensor(1.5), torch.tensor(3, dtype=torch.bfloat16), torch.tensor(float("nan")), torch.tensor(2j)]
    with nbkit.opdiff() as trace:
        for value in (*values, torch.tensor(True)):
            value.item()
        int(values[0]), bool(values[0]), [0, 1, 2][torch.tensor(1)], torch.equal(values[0], values[0])
    assert numbers(trace) == [(ITEM, "ok", "")] * 8 + [(EQUAL, "ok", "")]
    assert not any("no tensor" in reason for reason in trace.meta["skipped"])


def test_an_item_of_a_device_is_compared():
    x = torch.arange(3.0).to(simulated_device().torch_device)
    with nbkit.opdiff() as trace:
        assert x[2].item() == 2.0
    assert numbers(trace) == [(ITEM, "ok", "")]


def test_a_wrong_answer_is_a_mismatch(wrong_once):
    with nbkit.opdiff() as trace:
        assert torch.equal(torch.ones(2), torch.ones(2)) is False
    assert numbers(trace) == [(EQUAL, "mismatch", "False, expected True")]
    assert trace.meta["mismatches"] == 1
    assert "aten.equal.default" in trace.summary()


def test_filters_and_phases_choose_them_too():
    for options in ({"ops": "sin"}, {"phases": "backward"}, {"exclude_ops": "item"}):
        with nbkit.opdiff(**options) as trace:
            torch.ones(1).sin().item()
        assert numbers(trace) == []


def test_what_is_larger_than_max_bytes_is_not_compared():
    x = torch.ones(100)
    with nbkit.opdiff(max_bytes=100) as trace:
        torch.equal(x, x)
    assert numbers(trace) == []
    assert trace.meta["skipped"]["not compared: ops whose inputs take more than max_bytes=100 on the reference"] == 1
