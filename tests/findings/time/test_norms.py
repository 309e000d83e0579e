"""Norms that are made of single ops."""

from typing import Any

import pytest
import torch
from torch import nn

import nbkit
from tests.findings.time.steps import found


def calls(*ops: str, count: int = 2, **more: Any) -> list[dict[str, Any]]:
    """Rows of the ops of so many modules."""
    row = {"model": "Net", "module_call": 0, "total_time_us": 100.0, **more}
    return [{**row, "module": f"norm{number}", "op": f"aten.{op}.default"} for number in range(count) for op in ops]


RMS = ("pow", "mean", "add", "rsqrt", "mul", "mul")
LAYER = ("mean", "sub", "pow", "mean", "sub", "add", "sqrt", "div", "mul", "add")


def test_rms_norms_are_counted_with_their_time() -> None:
    message = "2 calls of an RMS norm are made of 6 single ops each, which take 12 % of the step (1.20 ms)"
    assert found(*calls(*RMS)) == [("norm", message)]
    message = "2 calls of an RMS norm are made of 8 single ops each, which take 16 % of the step (1.60 ms)"
    assert found(*calls("to", *RMS, "to")) == [("norm", message)]


def test_a_mean_that_is_taken_away_makes_it_a_layer_norm() -> None:
    ((rule, message),) = found(*calls(*LAYER))
    assert (rule, message.startswith("2 calls of a layer norm are made of 10 single ops each")) == ("norm", True)
    ((_, message),) = found(*calls("mean", "sub", "mul", "std", "add", "div", "add"))
    assert message.startswith("2 calls of a layer norm are made of 7 single ops each")


@pytest.mark.parametrize(
    "ops",
    [
        ("pow", "sum", "sqrt", "div"),  # a length, no mean
        ("pow", "mean", "rsqrt"),  # a number that scales nothing
        ("mean", "relu", "sqrt", "mul"),
        ("linear", "div", "softmax"),
    ],
)
def test_other_ops_are_no_norm(ops: tuple[str, ...]) -> None:
    assert found(*calls(*ops)) == []


def test_one_call_or_little_time_is_no_finding() -> None:
    assert found(*calls(*RMS, count=1, total_time_us=500.0)) == []
    assert found(*calls(*RMS), whole_us=1e6) == []


class RmsNorm(nn.Module):
    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.weight, self.fused = nn.Parameter(torch.ones(256)), fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fused:
            return nn.functional.rms_norm(x, (256,), self.weight, 1e-6)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


@pytest.mark.parametrize("fused", [False, True])
def test_a_recorded_step(fused: bool) -> None:
    model, x = nn.Sequential(*(RmsNorm(fused) for _ in range(4))), torch.randn(64, 64, 256)
    trace = nbkit.optime().run(lambda: model(x).sum().backward())
    findings = trace.findings[trace.findings["rule"] == "norm"]
    assert len(findings) == (0 if fused else 1)
    if not fused:
        (finding,) = findings.itertuples()
        assert finding.message.startswith("4 calls of an RMS norm are made of 6 single ops each, which take ")
        assert (finding.module, finding.count) == ("0", 4)
