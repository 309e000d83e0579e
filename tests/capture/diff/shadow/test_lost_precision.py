"""A step with no op at fault whose results are off nonetheless says so: gradients that underflow to 0 in float16."""

import json

import pytest
import torch
from torch import nn

from nbkit.views.brief.brief import brief_of
from tests.capture.diff.planted import compared, with_fault


def training(loss_scale, dtype=torch.float16):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(dtype)
    x = torch.randn(8, 16).to(dtype)
    return lambda: ((model(x).float() ** 2).mean() * loss_scale).backward()


@pytest.mark.parametrize(("loss_scale", "severity", "least"), [(1e-7, "warning", 1.0), (1.5e-5, "hint", 0.1)])
def test_gradients_that_underflow_are_a_finding_where_they_do(loss_scale, severity, least):
    trace = compared(training(loss_scale), against="cpu:float32")
    assert set(trace.diffs["error_class"].dropna()) == {"clean"}
    [found] = trace.findings.itertuples()
    assert (found.rule, found.severity, found.phase) == ("lost_precision", severity, "backward")
    off = json.loads(found.evidence)["total_error"]
    assert least <= off <= 1.1 and off == trace.meta["largest_error"]["total_error"]
    assert found.message.startswith(
        f"no op is at fault, but results are off from cpu:float32 by up to {off:.3g} of their norm (aten."
    )
    assert found.op_id == trace.meta["half_precision_lost_at"]["op_id"]
    said = " ".join("".join(str(word) for word in words) for words in brief_of(trace).verdict)
    assert said.startswith("1 warning." if severity == "warning" else "No errors and no warnings. 1 hint.")
    assert said.endswith(
        f"none is further from cpu than rounding allows. No op is at fault, but results are off from cpu:float32 by up "
        f"to {off:.3g}."
    )


def test_where_gradients_first_underflow_is_told():
    trace = compared(training(1e-7), against="cpu:float32")
    lost = trace.meta["half_precision_lost_at"]
    assert (lost["op"], lost["phase"], lost["total_error"]) == ("aten._to_copy.default", "backward", 1.0)
    assert lost["level"] == 2.0**-5


@pytest.mark.parametrize("against", ["cpu:float32", "cpu:float64", "cpu:bfloat16", "cpu:same"])
def test_a_step_that_keeps_its_precision_has_none(against):
    for dtype in (torch.float16, torch.bfloat16):
        assert not len(compared(training(1.0, dtype), against=against).findings)


def test_of_a_coarser_reference_nothing_is_told():
    trace = compared(training(1e-7, torch.float32), against="cpu:float16")
    assert trace.meta["largest_error"]["total_error"] > 0.1
    assert not len(trace.findings)


def test_a_step_with_an_op_at_fault_has_that_finding_alone():
    def doubled(func, args, out):
        return out * 2

    trace = with_fault(training(1.0), "aten.relu.default", doubled, against="cpu:float32")
    assert trace.findings["rule"].tolist() == ["mismatch"]
    assert trace.meta["largest_error"]["total_error"] > 0.1


def test_a_bias_before_batch_norm_is_not_off():
    """Its gradient is zero but for rounding, and Adam makes a step of any size of it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3))
    updates = torch.optim.AdamW(model.parameters(), lr=0.1)

    def step():
        model(torch.randn(5, 2, 4, 4)).square().mean().backward()
        updates.step()

    assert not len(compared(step, against="cpu:float64").findings)
