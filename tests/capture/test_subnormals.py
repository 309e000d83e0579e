"""The state of optimizers is looked at for subnormal numbers, and an op is timed on them."""

import itertools

import pytest
import torch

from nbkit.capture.replay.isolated import threads
from nbkit.capture.subnormals import WORKS, subnormal_state


class Own(torch.optim.Adam):
    """A type that no other test makes: all optimizers of a type are looked at."""


def made(scale, dtype=torch.float32):
    """An optimizer whose second moments are 1e-3 of the scale in half of the elements, and 1 in the others."""
    parameter = torch.ones(1000, dtype=dtype, requires_grad=True)
    optimizer = Own([parameter])
    squares = torch.ones(1000, dtype=dtype)
    squares[::2] = 1e-3 * scale
    optimizer.state[parameter] = {"step": torch.tensor(1.0), "exp_avg_sq": squares}
    return optimizer


@pytest.fixture
def clock(monkeypatch):
    """A clock on which the first five pieces of work take 12 s, all others 1 s."""
    times = itertools.chain.from_iterable([0.0, 12.0 if number < 5 else 1.0] for number in itertools.count())
    monkeypatch.setattr("nbkit.capture.subnormals.perf_counter", lambda: next(times))


@pytest.mark.parametrize(("dtype", "scale"), [(torch.float32, 1e-37), (torch.float64, 1e-307)])
def test_the_share_the_name_and_the_slowdown_are_found(clock, dtype, scale):
    optimizer = made(scale, dtype)
    found = subnormal_state("Own", "aten.sqrt")
    assert found == ("exp_avg_sq", 0.5, torch.finfo(dtype).smallest_normal, 12.0)
    del optimizer


def test_what_is_as_fast_as_others_is_not_told(monkeypatch):
    times = itertools.cycle([0.0, 1.0])
    monkeypatch.setattr("nbkit.capture.subnormals.perf_counter", lambda: next(times))
    optimizer = made(1e-37)
    assert subnormal_state("Own", "aten.sqrt") is None
    del optimizer


@pytest.mark.parametrize("op", ["aten._fused_adam_", "aten.copy_"])
def test_of_fused_kernels_and_copies_nothing_is_known(clock, op):
    optimizer = made(1e-37)
    assert subnormal_state("Own", op) is None
    del optimizer


def test_small_normal_numbers_are_no_subnormal_ones_and_a_second_usual_optimizer_leaves_it_open(clock):
    usual = made(1e-30)
    assert subnormal_state("Own", "aten.sqrt") is None
    both = usual, made(1e-37)
    assert subnormal_state("Own", "aten.sqrt") is None
    assert subnormal_state("Adamax", "aten.sqrt") is None
    del usual, both


def test_flushed_numbers_are_zero(clock):
    optimizer = made(1e-37)
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush them")
    try:
        assert subnormal_state("Own", "aten.sqrt") is None
    finally:
        torch.set_flush_denormal(False)
    del optimizer


def test_it_is_timed_in_one_thread_and_the_number_of_threads_stays(clock, monkeypatch):
    counts = []
    monkeypatch.setitem(WORKS, "sqrt", lambda values: counts.append(torch.get_num_threads()))
    optimizer, before = made(1e-37), torch.get_num_threads()
    with threads(2):
        assert subnormal_state("Own", "aten.sqrt") is not None
        assert (set(counts), torch.get_num_threads()) == ({1}, 2)
    assert torch.get_num_threads() == before
    del optimizer
