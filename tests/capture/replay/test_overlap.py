"""Which tensors share memory, and what becomes of ops that write to them."""

import pytest
import torch

import nbkit
from nbkit.capture.replay.overlap import overlap
from tests.capture.diff.planted import compared

X = torch.zeros(4, 6)


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ([X], False),
        ([X, X], False),  # one tensor, of which one copy is made
        ([X, X[0]], True),
        ([X[:2], X[2:]], False),
        ([X.t()[1], X[0]], True),
        ([X[:0], X], False),
        ([X, torch.zeros(4, 6)], False),
        ([X[3], X[0], X.view(-1)[5:7]], True),
    ],
)
def test_views_of_the_same_elements_overlap(tensors, expected):
    assert overlap(tensors) is expected


def test_an_op_that_writes_to_overlapping_tensors_is_a_row_with_the_reason():
    x = torch.zeros(3, 3)
    trace = compared(lambda: (torch._foreach_add_([x, x[0]], 1.0), x.exp()))
    assert x.tolist() == [[2, 2, 2], [1, 1, 1], [1, 1, 1]]
    assert trace.diffs["status"].tolist() == ["skipped", "ok"]
    assert trace.diffs["message"][0] == "it writes to tensors which share memory; copies of them would not"
    assert trace.meta["skipped"]["not compared: ops that write to tensors which share memory"] == 1


def test_wrappers_without_an_address_are_compared():
    """On the simulated device every tensor is one."""
    device = nbkit.SimulatedDevice().torch_device
    x, y = torch.zeros(3, device=device), torch.zeros(3, device=device)
    trace = compared(lambda: torch._foreach_add_([x, y], 1.0))
    assert trace.diffs["status"].tolist() == ["ok", "ok"]


def test_parts_of_one_buffer_are_compared():
    buffer = torch.zeros(8)
    trace = compared(lambda: torch._foreach_add_([buffer[:3], buffer[3:]], 1.0))
    assert trace.diffs["status"].tolist() == ["ok", "ok"]
