"""opfallback(keep=) keeps the device's result beside the CPU's, and changes nothing of the step."""

import pytest
import torch

import nbkit
from tests.support.simulated import needs_simulated_device, simulated_device

pytestmark = needs_simulated_device
FAULTS = [nbkit.Fault("aten.exp", "relative_error", size=0.01), nbkit.Fault("aten.mul_", "relative_error", size=0.01)]


@pytest.fixture(scope="module")
def device():
    return simulated_device(FAULTS).torch_device


def test_both_results_are_kept(device):
    x = torch.rand(3, 4) + 1
    with nbkit.opfallback(ops="exp", keep=8) as trace:
        y = x.to(device).exp()
    assert torch.equal(y.cpu(), x.exp())
    (op_id,) = trace.captured
    assert trace.ops["op"][op_id] == "aten.exp.default"
    (result,) = nbkit.call_of(trace, op_id).results
    assert torch.equal(result.expected.float(), x.exp())
    assert 0.005 < (result.actual / result.expected - 1).abs().max().item() < 0.02
    largest = trace.captured[op_id].results[0].max_abs_error
    assert largest == pytest.approx((result.actual - result.expected).abs().max().item())
    compile(nbkit.script_of(trace, op_id), "script", "exec")
    assert trace.meta["captured"]["calls"] == 1


def test_what_is_written_is_kept_too_and_the_step_is_the_cpus(device):
    x = torch.rand(3, 4)
    y = x.to(device)
    with nbkit.opfallback(ops="mul_", keep=1) as trace:
        y.mul_(2), y.mul_(3)
    assert torch.equal(y.cpu(), x * 2 * 3)
    (op_id,) = trace.captured  # no more than keep
    result = nbkit.call_of(trace, op_id).results[0]
    assert torch.equal(result.expected.float(), x * 2)
    assert not torch.equal(result.actual.float(), x * 2)


def test_random_numbers_are_those_of_the_step():
    seen = []
    for options in ({}, {"keep": 8}):
        torch.manual_seed(0)
        with nbkit.opfallback(**options) as trace:
            seen.append(torch.nn.functional.dropout(torch.ones(64), 0.5) * torch.rand(64))
    assert torch.equal(*seen)
    assert {call.op for call in trace.captured.values()} <= {"aten.ones.default", "aten.mul.Tensor", "aten.div_.Scalar"}


def test_without_keep_nothing_is_kept_and_bad_values_are_refused():
    with nbkit.opfallback() as trace:
        torch.rand(3).exp()
    assert trace.captured == {} and "captured" not in trace.meta
    with pytest.raises(nbkit.OptionError, match="keep must be a number of calls, got -1"):
        nbkit.opfallback(keep=-1)
    with pytest.raises(nbkit.OptionError, match="keep_bytes must be a size, got 'much'"):
        nbkit.opfallback(keep=1, keep_bytes="much")
    with nbkit.opfallback(keep=1, keep_bytes=4) as trace:
        torch.ones(8).exp()
    (reason,) = trace.meta["captured"]["not_captured"].values()
    assert "keep_bytes=4 is used up" in reason
