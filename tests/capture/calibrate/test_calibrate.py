"""calibrate() measures this machine, and opcost then predicts its times; here on small tensors alone."""

from collections import deque
from functools import partial
from time import sleep
from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from nbkit.capture.calibrate import calibrate
from nbkit.capture.calibrate.calibrate import _measured, launch_times_us
from nbkit.capture.calibrate.clock import Clock
from nbkit.capture.calibrate.probes.probe import Place, Probe
from nbkit.capture.calibrate.probes.rows import row_probes
from nbkit.capture.cost.device_option import current_device
from nbkit.errors import OptionError

KIB = 2**10


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NBKIT_CACHE", str(tmp_path))
    return tmp_path


def step():
    x = torch.randn(32, 64, requires_grad=True)
    torch.nn.functional.gelu(torch.nn.Linear(64, 64)(x)).sum().backward()


def test_what_was_measured_predicts_a_step(cache):
    state = torch.get_rng_state()
    device = nbkit.calibrate(device="cpu", seconds=0, largest_bytes=64 * KIB)
    assert torch.equal(state, torch.get_rng_state())
    calls = device.calls
    assert calls["moved_bytes"].max() <= 64 * KIB and (calls["time_us"] > 0).all()
    assert {"aten.mm", "aten.convolution_backward", "aten.native_layer_norm", "aten.view"} <= {*calls["op"]}
    assert {"float32", "bfloat16", "float16", "float64"} == {*device.flops_per_s}
    assert set(device.phase_launch_us) == {"forward", "backward", "optimizer"} and not device.is_queued
    assert {"aten.empty", "aten._local_scalar_dense"} <= {*calls["op"]}
    assert [moved for moved, _ in device.cold_us] == [0.0, 64 * KIB]
    (path,) = cache.rglob("*.json")
    assert path.parent.name == "calibrated"
    for name in ("cpu", "CPU", device):
        costs = nbkit.opcost(device=name).run(step).costs
        assert (costs["time_us"] > 0).all() and costs["bound"].isin(["compute", "memory", "launch"]).all()
    assert nbkit.opcost(device="cpu").run(step).meta["cost_device"] == device.peaks()


def test_bytes_and_flops_of_a_measured_call_are_those_of_opcost(cache):
    calls = nbkit.calibrate(device="cpu", seconds=0, largest_bytes=16 * KIB).calls
    left, right = torch.ones(32, 32), torch.ones(32, 32).t()
    cost = nbkit.opcost().run(lambda: torch.mm(left, right)).costs.iloc[-1]
    known = calls[(calls["op"] == "aten.mm") & (calls["dtype"] == "float32")]
    assert (cost["flops"], cost["read_bytes"] + cost["written_bytes"]) in [
        *zip(known["flops"], known["moved_bytes"], strict=True)
    ]


def test_a_machine_that_was_not_measured_says_how(cache):
    with pytest.raises(OptionError, match=r"cpu runs ops has not been measured .* run nbkit\.calibrate\(\)"):
        nbkit.opcost(device="cpu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": -1}, "seconds must be a number from 0 up, got -1"),
        ({"seconds": float("inf")}, "seconds must be a number from 0 up, got inf"),
        ({"largest_bytes": "1 MiB"}, "largest_bytes must be a number from 0 up, got '1 MiB'"),
        ({"largest_bytes": 10}, "No call was measured"),
        ({"device": "quantum"}, "device='quantum' is not on this machine; here are"),
    ],
)
def test_bad_options_are_refused(cache, options, message):
    with pytest.raises(OptionError, match=message):
        nbkit.calibrate(**options)
    assert not [*cache.rglob("*.json")]


def test_caches_are_emptied_by_what_is_larger_than_they_are(monkeypatch):
    """The clock is made: each look at a view takes 1 us, and 5 us after a copy of 1 MiB or more."""
    moved = []

    class Clocked:
        now = 0

        def __call__(self):
            return self.now

    def look(self):
        Clocked.now += 1_000 if not moved or moved[-1] < 2**20 else 5_000

    copy = torch.Tensor.copy_
    monkeypatch.setattr(torch.Tensor, "copy_", lambda self, other: moved.append(self.nbytes * 2) or copy(self, other))
    monkeypatch.setattr(torch.Tensor, "t", look)
    monkeypatch.setattr(calibrate, "perf_counter_ns", Clocked())
    pairs = calibrate.cold_times_us(Clock(torch.device("cpu")), 2**22)
    assert pairs == [(0, 0), (2**16, 0), (2**19, 0), (2**20, 4), (2**21, 4), (2**22, 4)]


def test_the_host_of_an_accelerator_keeps_its_caches():
    assert calibrate.cold_times_us(SimpleNamespace(is_cpu=False)) == []


def test_the_clock_takes_longer_for_more():
    clock = Clock(torch.device("cpu"))
    small, large = (torch.ones(elements) for elements in (64, 2**20))
    times = [clock.time_us(partial(partial, tensor.exp), 8, seconds=0) for tensor in (small, large)]
    assert 0 < times[0] < times[1]


@pytest.mark.parametrize(("threads", "counts"), [(1, False), (2, True)])
def test_of_a_single_thread_only_its_own_work_counts(monkeypatch, threads, counts):
    """While this one sleeps another process may run; threads of torch have no clock of their own."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    took_us = Clock(torch.device("cpu")).sample([partial(sleep, 0.05)], deque())
    assert (took_us >= 50_000) == counts


class Event:
    """Counts how often one is recorded; 2.5 ms pass between any two."""

    recorded = 0

    def __init__(self, device, enable_timing):
        assert enable_timing

    def record(self):
        Event.recorded += 1

    def synchronize(self):
        assert Event.recorded == 2
        Event.recorded = 0

    def elapsed_time(self, last):
        if Event.recorded:
            raise RuntimeError("both events must have been completed")
        return 2.5


def test_an_accelerator_is_timed_by_its_events(monkeypatch):
    """The calls stand between two events of the stream; there is none on a CPU, so that another event is taken here."""
    monkeypatch.setattr(torch, "Event", Event)
    clock, seen = Clock(torch.device("meta")), []
    assert clock.sample([lambda: seen.append(Event.recorded)] * 3, deque()) == 2500.0
    assert seen == [1, 1, 1]


def test_an_accelerator_is_busy_while_calls_are_launched(monkeypatch):
    """Else the time of a small one is that of launching it. Four products take 2.5 ms here, 300 launches up to 9 ms."""
    monkeypatch.setattr(torch, "Event", Event)
    clock, seen = Clock(torch.device("meta")), []
    monkeypatch.setattr(torch, "mm", lambda left, right: seen.append(Event.recorded))
    clock.sample([lambda: None] * 300, deque())
    assert seen == [0] * 15


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, partial(torch.autocast, "cpu")])
def test_the_mode_of_the_caller_does_not_count(cache, mode):
    with mode():
        device = nbkit.calibrate(device="cpu", seconds=0, largest_bytes=16 * KIB)
    assert device.flops_per_s["float32"] > 0


class Ticks(TorchDispatchMode):
    """Is a clock of which each op takes 1 us."""

    device, is_cpu, ops = torch.device("cpu"), True, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops += 1
        return func(*args, **(kwargs or {}))

    def now(self):
        return 1_000 * self.ops


def test_launching_is_told_by_phase_and_op():
    with Ticks() as clock:
        launches = launch_times_us(clock, repeats=2)
    assert {*launches} == {"forward", "backward", "optimizer"}
    assert all(0.8 < time < 1.2 for time in launches.values())


@pytest.mark.parametrize(("largest_bytes", "took_us"), [(300, 1.0), (10_000, 60_000.0)])
def test_after_a_call_that_is_too_large_or_takes_too_long_no_larger_ones_are_made(largest_bytes, took_us):
    made = []

    def make(size, place):
        made.append(size)
        return partial(torch.ops.aten.exp.default, place.filled(size))

    place = Place(torch.device("cpu"), torch.float32)
    probes = [Probe(torch.ops.aten.exp.default, place, partial(make, size)) for size in (32, 64, 128, 256)]
    clock = SimpleNamespace(time_us=lambda make, moved, seconds: took_us)
    calls = _measured(probes, clock, 0, largest_bytes)
    assert calls["moved_bytes"].tolist() == [256] and made == ([32, 64] if took_us == 1 else [32])


def test_an_accelerator_is_one_whose_events_tell_times(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("meta"))
    assert current_device(None) == torch.device("cpu")  # meta tensors have no events
    monkeypatch.setattr(torch, "Event", Event)
    assert current_device(None) == current_device("meta") == torch.device("meta")
    monkeypatch.setattr(Event, "recorded", 1)  # so that they can be recorded, and tell nothing
    monkeypatch.setattr(Event, "synchronize", lambda self: None)
    assert current_device(None) == torch.device("cpu")


def test_copies_are_measured_of_heads_that_change_places_with_positions():
    """As around attention: the copy alone brings them in order."""
    probes = [probe for probe in row_probes(Place(torch.device("cpu"), torch.float32)) if probe.name == "aten.clone"]
    call = probes[1].make(probes[1].place)
    x, made = call.args[0], call()
    assert x.shape == (4, 64, 16) and not x.is_contiguous()
    assert made.is_contiguous() and torch.equal(made, x)
