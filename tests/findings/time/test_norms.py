"""Norms that are made of single ops, of which only those are told that a fused op was measured to be faster than."""

import json
from typing import Any

import pytest
import torch
from torch import nn

import nbkit
from nbkit.findings.time.cases import Case, Measured, NormCase, Place
from tests.findings.time.steps import found

SHAPE, DTYPES = "[[4, 8, 16], []]", json.dumps(["float32", None])
RMS = ("pow", "mean", "add", "rsqrt", "mul", "mul")
LAYER = ("mean", "sub", "pow", "mean", "sub", "add", "sqrt", "div", "mul", "add")


def calls(*ops: str, count: int = 2, dim: list[int] | None = None, **more: Any) -> list[dict[str, Any]]:
    """Returns rows of the ops of so many modules, which have their means over `dim`."""
    row = {"model": "Net", "module_call": 0, "total_time_us": 100.0, "device": "cpu", **more}
    row |= {"input_shapes": SHAPE, "input_dtypes": DTYPES, "arguments": json.dumps({"dim": dim or [-1]})}
    return [{**row, "module": f"norm{number}", "op": f"aten.{op}.default"} for number in range(count) for op in ops]


def halved(case: Case) -> Measured:
    return Measured("rms_norm", 0.5)


def test_rms_norms_are_counted_with_their_time_and_what_is_saved() -> None:
    message = (
        "2 calls of an RMS norm are made of 10 single ops each, which take 20 % of the step (2.00 ms); rms_norm, "
        "run on the same shapes, saves at least 10 % of the step (1.00 ms)"
    )
    assert found(*calls("to", *RMS, "to", "view", "add"), measure=halved) == [("norm", message)]


def test_what_was_not_measured_or_saves_little_is_no_finding() -> None:
    rows = calls(*RMS, total_time_us=300.0)
    assert [rule for rule, _ in found(*rows, measure=halved)] == ["norm"]
    assert found(*rows) == []
    assert found(*rows, measure=lambda case: None) == []
    assert found(*rows, measure=lambda case: Measured("rms_norm", 0.9)) == []
    assert found(*rows, measure=lambda case: Measured("rms_norm", 1.5)) == []
    assert found(*calls(*RMS, count=1, total_time_us=600.0), measure=halved) == []
    assert found(*rows, whole_us=1e6, measure=halved) == []


def test_the_case_is_what_was_recorded() -> None:
    seen: list[Case] = []

    def measure(case: Case) -> Measured:
        seen.append(case)
        return Measured("layer_norm", 0.1)

    ((_, message),) = found(*calls(*LAYER, total_time_us=300.0), measure=measure)
    assert message.startswith("2 calls of a layer norm are made of 10 single ops each")
    assert seen == [NormCase((4, 8, 16), 1, True, "float32", Place("float32", "cpu", False))]  # equal ones run once
    found(*calls(*RMS, dim=[1, 2], total_time_us=300.0), measure=measure)
    assert seen[1] == NormCase((4, 8, 16), 2, False, "float32", Place("float32", "cpu", False))
    found(*calls(*RMS, dim=[0], total_time_us=300.0), measure=measure)  # over the batch: no op does that
    assert len(seen) == 2


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
    assert found(*calls(*ops, total_time_us=500.0), measure=halved) == []


class RmsNorm(nn.Module):
    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.weight, self.fused = nn.Parameter(torch.ones(256)), fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fused:
            return nn.functional.rms_norm(x, (256,), self.weight, 1e-6)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


@pytest.mark.parametrize("fused", [False, True])
def test_a_recorded_step(fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Case] = []

    def measure(case: Case) -> Measured:
        seen.append(case)
        return Measured("rms_norm", 0.1)

    monkeypatch.setattr("nbkit.capture.profiler.optime.measure", measure)
    model, x = nn.Sequential(*(RmsNorm(fused) for _ in range(4))), torch.randn(64, 64, 256)
    trace = nbkit.optime(savings=True).run(lambda: model(x).sum().backward())
    findings = trace.findings[trace.findings["rule"] == "norm"]
    assert len(findings) == (0 if fused else 1)
    assert seen == ([] if fused else [NormCase((64, 64, 256), 1, False, "float32", Place("float32", "cpu", True))])
    if not fused:
        (finding,) = findings.itertuples()
        assert finding.message.startswith("4 calls of an RMS norm are made of 6 single ops each, which take ")
        assert (finding.module, finding.count) == ("0", 4)
