"""Comparing needs memory for the largest op, however long the step is, and keeps nothing afterwards."""

import gc

import pytest
import torch

from nbkit.capture.replay import reference
from tests.capture.diff.planted import compared
from tests.support.garbage import pass_over


@pytest.fixture(autouse=True)
def nothing_older():
    """What other tests left is not looked through again and again."""
    pass_over()


def live_bytes():
    """Bytes of the strided tensors made since the test began."""
    gc.collect()
    tensors = [each for each in gc.get_objects() if type(each) is torch.Tensor and each.layout is torch.strided]
    return sum(each.untyped_storage().nbytes() for each in tensors)


def peak_of(calls, monkeypatch):
    """Largest sum of tensors alive whenever a reference has run, above what was alive before."""
    x, seen, before = torch.randn(100, 1000), [], live_bytes()
    run = reference.Call.once

    def counted(self, *args):
        found = run(self, *args)
        seen.append(live_bytes() - before)
        return found

    monkeypatch.setattr(reference.Call, "once", counted)
    compared(lambda: [(x.softmax(1), None)[1] for _ in range(calls)], ops="aten._softmax")
    monkeypatch.undo()
    assert len(seen) >= calls
    return max(seen)


def test_the_peak_does_not_grow_with_the_step(monkeypatch):
    short, long = peak_of(3, monkeypatch), peak_of(30, monkeypatch)
    assert 800_000 < long < 4_000_000
    assert long <= short * 1.1


def test_small_tensors_wait_within_a_bound():
    """65,536 elements and what one op adds."""
    x = torch.randn(1000)
    before = live_bytes()
    trace = compared(lambda: [x.exp() for _ in range(500)] and None)
    assert len(trace.diffs) == 500
    assert live_bytes() - before < 1_000_000
