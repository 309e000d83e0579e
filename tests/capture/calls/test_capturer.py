"""Tests what opdiff keeps: the first wrong calls, correct ones only if asked for, within its bounds."""

import pytest
import torch

import nbkit
from nbkit.errors import OptionError
from tests.capture.diff.planted import compared, scaled, with_fault

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def twice_exp():
    return X.exp(), X.exp()


def test_a_wrong_call_is_kept_and_a_right_one_is_not():
    trace = with_fault(twice_exp, "aten.exp.default", scaled, call=1)
    bad = trace.diffs.query("status == 'mismatch'")["op_id"].item()
    assert list(trace.captured) == [bad]
    assert trace.meta["captured"] | {"size_bytes": 0} == {
        "calls": 1, "size_bytes": 0, "keep": 8, "keep_bytes": 64 * 2**20, "not_captured": {},
    }  # fmt: skip
    assert trace.meta["captured"]["size_bytes"] == trace.captured[bad].size_bytes == X.numel() * (4 + 8 + 8)


def test_nothing_is_kept_of_a_right_step():
    assert compared(twice_exp).captured == {}


def test_keep_0_keeps_nothing():
    assert with_fault(twice_exp, "aten.exp.default", scaled, keep=0).captured == {}


def test_right_calls_are_kept_of_ops_that_are_asked_for():
    trace = compared(lambda: (X.exp(), X.exp(), X.sin(), X.exp()), keep=2, keep_ops="exp")
    assert [call.op for call in trace.captured.values()] == ["aten.exp.default"] * 2
    assert list(trace.captured) == trace.diffs.query("op == 'aten.exp.default'")["op_id"].tolist()[:2]


def test_a_call_beyond_keep_bytes_is_not_kept_and_said():
    for keep_bytes, needed in ((100, 480), (50, 96)):
        trace = with_fault(twice_exp, "aten.exp.default", scaled, keep_bytes=keep_bytes)
        bad = str(trace.diffs.query("status == 'mismatch'")["op_id"].item())
        reason = f"its values need {needed} bytes, and keep_bytes={keep_bytes} is used up"
        assert (trace.captured, trace.meta["captured"]["not_captured"]) == ({}, {bad: reason})


def test_keep_bytes_holds_for_all_calls_together():
    trace = compared(twice_exp, keep_ops="exp", keep_bytes=2 * 480 - 1)
    first, second = trace.diffs["op_id"]
    assert list(trace.captured) == [first]
    reason = "its values need 480 bytes, and keep_bytes=959 is used up"
    assert trace.meta["captured"]["not_captured"] == {str(second): reason}


def test_values_that_there_is_no_memory_to_copy_are_not_kept_and_said(monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr("nbkit.capture.calls.capturer.captured_tensor", full)
    trace = with_fault(twice_exp, "aten.exp.default", scaled)
    bad = str(trace.diffs.query("status == 'mismatch'")["op_id"].item())
    assert trace.captured == {}
    assert trace.meta["captured"]["not_captured"] == {bad: "its values could not be copied (MemoryError)"}


def test_kept_inputs_are_those_before_an_op_that_writes_to_them():
    def step():
        return X.clone().mul_(2)

    trace = with_fault(step, "aten.mul_.Tensor", scaled)
    call = nbkit.call_of(trace, trace.diffs.query("status == 'mismatch'")["op_id"].item())
    assert torch.equal(call.args[0], X)
    assert torch.equal(call.actual, (X * 2) * (1 + 1e-4))


def test_each_wrong_result_of_a_call_is_kept():
    def all_scaled(func, args, out):
        return [one.mul_(1 + 1e-4) for one in out]

    trace = with_fault(lambda: torch._foreach_exp([X, X + 1]), "aten._foreach_exp.default", all_scaled)
    assert trace.diffs["status"].tolist() == ["ok", "mismatch", "mismatch"]
    (call,) = trace.captured.values()
    assert [(one.role, one.position) for one in call.results] == [("output", 0), ("output", 1)]
    assert trace.meta["captured"]["not_captured"] == {}


def test_kept_values_are_copies():
    x = X.clone()
    trace = with_fault(lambda: x.exp(), "aten.exp.default", scaled)
    x.zero_()
    assert torch.equal(nbkit.call_of(trace, next(iter(trace.captured))).args[0], X)


def test_an_op_that_the_filters_leave_out_has_no_values_in_the_trace():
    for keep_bytes in (2**20, 1):
        trace = with_fault(
            lambda: X.exp().sin(), "aten.exp.default", scaled, ops="torch.Tensor.sin", keep_bytes=keep_bytes
        )
        assert trace.captured == {} and trace.meta["captured"]["not_captured"] == {}


def test_the_steps_own_results_are_the_same_bits_while_values_are_kept():
    bare = X.exp().sin()
    kept = []
    compared(lambda: kept.append(X.exp().sin()), keep_ops="*")
    assert torch.equal(kept[0], bare)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": -1}, "keep must be a number of calls, got -1; give 0 to keep none, or such as 8"),
        ({"keep": True}, "keep must be a number of calls, got True"),
        ({"keep_bytes": -5}, "keep_bytes must be a size, got -5"),
        ({"keep_bytes": "1M"}, "keep_bytes must be a size, got '1M'; give a number of bytes"),
    ],
)
def test_a_bound_that_is_none_is_refused_before_anything_runs(options, message):
    with pytest.raises(OptionError, match=message):
        nbkit.opdiff(**options)
