"""Tests optime over several runs: what is shown, and the times of each op in all of them."""

import numpy as np
import pytest
import torch

import nbkit
from nbkit.capture.profiler.repeated_runs import op_keys
from nbkit.schema import SAMPLES, TIMINGS
from tests.capture.models import train_step
from tests.capture.timed import named


def test_the_step_runs_as_often_as_asked():
    calls = []
    trace = nbkit.optime(warmup=2, repeats=3).run(lambda: calls.append(torch.ones(1)))
    assert len(calls) == 5
    assert (trace.meta["warmup"], trace.meta["repeats"]) == (2, 3)
    assert TIMINGS.check(trace.timings)["repeats"].tolist() == [3] * len(trace.ops)
    assert len(nbkit.optime(warmup=1).run(lambda: calls.append(1)).ops) == 1
    assert len(calls) == 7
    assert "timings" not in nbkit.optime().run(lambda: None).frames


def test_timings_are_those_of_the_samples():
    trace = nbkit.optime(warmup=1, repeats=5).run(train_step("mlp"))
    samples = SAMPLES.check(trace.samples).pivot(index="op_id", columns="repeat", values="total_time_us")
    assert samples.shape == (len(trace.ops), 5)
    assert trace.timings["median_us"].tolist() == pytest.approx(samples.median(axis=1).tolist())
    assert trace.timings["min_us"].tolist() == samples.min(axis=1).tolist()
    quartiles = np.percentile(samples.to_numpy(), [25, 75], axis=1)
    assert trace.timings["iqr_us"].tolist() == pytest.approx((quartiles[1] - quartiles[0]).tolist())


def test_times_of_calls_are_medians_over_the_runs():
    trace = nbkit.optime(warmup=1, repeats=5).run(train_step("mlp"))
    samples = trace.samples.pivot(index="op_id", columns="repeat", values="self_time_us")
    assert trace.ops["self_time_us"].tolist() == np.median(samples.to_numpy(), axis=1).tolist()
    assert trace.ops["self_time_us"].sum() == pytest.approx(trace.ops["total_time_us"].iloc[0])
    assert trace.meta["wall_us"] == pytest.approx(trace.timings["median_us"].iloc[0], rel=0.05, abs=500)


def test_calls_lie_within_their_caller_whatever_their_medians():
    ops = nbkit.optime(warmup=1, repeats=3).run(train_step("llama")).ops
    called = ops[ops["parent_id"].notna()]
    around = ops.iloc[called["parent_id"].astype("int64")].reset_index(drop=True)
    called = called.reset_index(drop=True)
    assert (called["start_us"] >= around["start_us"] - 1e-6).all()
    ends = [frame["start_us"] + frame["total_time_us"] for frame in (called, around)]
    assert (ends[0] <= ends[1] + 1e-6).all()
    assert ops["start_us"].is_monotonic_increasing


def test_runs_that_differ_are_matched_op_by_op():
    sizes = iter([1, 2, 1])

    def step():
        for _ in range(next(sizes)):
            torch.ones(2).exp()
        torch.zeros(2).sin()

    trace = nbkit.optime(repeats=3).run(step)
    counts = trace.timings.set_index("op_id")["repeats"]
    assert counts[named(trace, "aten.sin.default")["op_id"]].tolist() == [3]
    assert counts[named(trace, "aten.exp.default")["op_id"]].tolist() in ([3], [3, 1])


def test_an_exception_in_a_run_keeps_the_runs_before_it():
    calls = []

    def step():
        calls.append(torch.ones(1))
        if len(calls) == 4:
            raise ValueError("enough")

    timing = nbkit.optime(warmup=1, repeats=5)
    with pytest.raises(ValueError, match="enough"):
        timing.run(step)
    assert not timing.trace.complete
    assert timing.trace.meta["repeats"] == 2
    assert len(timing.trace.timings) == len(timing.trace.ops)


def test_an_exception_while_warming_up_leaves_an_empty_trace():
    timing = nbkit.optime(warmup=1, repeats=1)
    with pytest.raises(ZeroDivisionError):
        timing.run(lambda: 1 / 0)
    assert len(timing.trace.ops) == 0
    assert timing.trace.meta["error"]["type"] == "ZeroDivisionError"


def test_places_tell_equal_ops_apart_and_are_the_same_in_every_run():
    trace = nbkit.optime(warmup=1, repeats=2).run(train_step("llama"))
    keys = op_keys(trace.ops)
    assert len(set(keys.tolist())) == len(keys)
    assert trace.timings["repeats"].tolist() == [2] * len(keys)


def test_a_block_cannot_be_repeated_and_says_how_a_step_can():
    message = r"a `with` block runs once; use nbkit.optime\(repeats=N\).run"
    with pytest.raises(nbkit.OptionError, match=message), nbkit.optime(repeats=2):
        pass
    with pytest.raises(ValueError, match="mine"), nbkit.optime(warmup=2):
        raise ValueError("mine")


@pytest.mark.parametrize("verb", [nbkit.optime, nbkit.opdoctor])
def test_each_run_begins_in_the_state_of_the_thread_in_which_the_first_one_did(verb):
    seen = []

    def step():
        seen.append((torch.get_default_dtype(), torch.is_grad_enabled()))
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return torch.ones(3) * 2

    try:
        verb(warmup=1, repeats=2).run(step)
        assert (torch.get_default_dtype(), torch.is_grad_enabled()) == (torch.float64, False)  # as one run leaves it
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
    assert seen == [(torch.float32, True)] * 3
