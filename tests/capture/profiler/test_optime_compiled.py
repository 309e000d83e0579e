"""Tests where optime puts the time of regions of torch.compile, beside what torch.profiler says of them."""

from importlib import import_module

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from nbkit.analysis.time.gaps import time_by_kind
from nbkit.capture.profiler.optime import HIDDEN_KERNELS
from nbkit.views.sections.time import time_sections
from tests.capture.timed import level, timed


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def gelu_step():
    """Returns a training step of a compiled model: one product, and a gelu of 65,536 elements."""
    model, x = nn.Sequential(nn.Linear(64, 256), nn.GELU(approximate="tanh")), torch.randn(256, 64)
    compiled = torch.compile(model, backend="inductor")

    def step():
        compiled(x).sum().backward()

    step()
    return step


def profiler_names(step):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    return sorted(event.name() for event in profiler.profiler.kineto_results.events() if "fused" in event.name())


def self_time_us(trace, kind):
    times = time_by_kind(trace.ops)
    return float(times.loc[times["kind"] == kind, "self_time_us"].sum())


@pytest.mark.full  # inductor compiles C++
def test_the_time_of_fused_kernels_is_the_region_s_and_said(monkeypatch):
    inductor = import_module("torch._inductor.config")
    monkeypatch.setattr(inductor, "force_disable_caches", True)
    monkeypatch.setattr(inductor.cpp, "enable_kernel_profile", False)
    step = gelu_step()
    assert profiler_names(step) == []
    trace = timed(step)
    assert trace.meta["notes"] == [HIDDEN_KERNELS]
    regions = trace.ops[trace.ops["op"].str.match("Torch-Compiled Region|CompiledFunction")]
    assert regions["self_time_us"].sum() > 0
    assert self_time_us(trace, "compiled") == pytest.approx(regions["self_time_us"].sum())
    (section,) = [section for section in time_sections(trace, 9) if section.title == "In ops and between them"]
    assert "compiled regions: fused kernels, and Python around them" in [label for label, *_ in section.rows]
    monkeypatch.setattr(inductor.cpp, "enable_kernel_profile", True)
    torch._dynamo.reset()
    step = gelu_step()
    expected = profiler_names(step)
    trace = timed(step)
    fused = level(trace, "aten")[level(trace, "aten")["op"].str.contains("fused")]
    assert sorted(fused["op"]) == expected
    assert sorted(fused["phase"].unique()) == ["backward", "forward"]
    assert set(trace.ops["op"].loc[fused["parent_id"]]) == {"CompiledFunction", "CompiledFunctionBackward"}
    assert fused["model"].tolist() == ["OptimizedModule"] * len(fused)
    assert "notes" not in trace.meta
    assert self_time_us(trace, "compiled") == 0.0
