"""Tests each verb on a step that inductor has compiled, beside what torch.profiler says of its fused kernels."""

from importlib import import_module
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import nbkit
from nbkit.analysis.time.gaps import time_by_kind
from nbkit.capture.native.library import library
from nbkit.capture.profiler.kineto_recording import HIDDEN_KERNELS
from nbkit.views.sections.time import time_sections
from tests.capture.models import aten, bits
from tests.capture.timed import level, timed

pytestmark = pytest.mark.full  # inductor compiles C++
VERBS = {"optrace": nbkit.optrace, "opcheck": nbkit.opcheck, "opdiff": nbkit.opdiff, "optime": nbkit.optime}


class Layer(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.linear, self.activation = nn.Linear(64, 256), activation

    def forward(self, x):
        y = self.linear(x)
        return self.activation(y)


LINES = Layer.forward.__code__.co_firstlineno + 1, Layer.forward.__code__.co_firstlineno + 2


def compiled_step(activation):
    """Returns a training step of a compiled model: one product, and an activation of 65,536 elements."""
    torch.manual_seed(5)
    model, x = Layer(activation), torch.randn(256, 64)
    compiled = torch.compile(model)

    def step():
        model.zero_grad()
        loss = compiled(x).sum()
        loss.backward()
        return bits([loss.detach(), *(parameter.grad for parameter in model.parameters())])

    step()
    return step


@pytest.fixture(scope="module")
def steps():
    """Is the step compiled twice: with kernels that the profiler does not see, and with kernels that it does."""
    inductor = import_module("torch._inductor.config")
    made = {}
    torch._dynamo.reset()
    with inductor.patch(force_disable_caches=True):
        # Of two models: what is compiled of one would do for another that is alike.
        for name, is_on, activation in (("hidden", False, nn.Tanh()), ("shown", True, nn.GELU())):
            with inductor.patch({"cpp.enable_kernel_profile": is_on, "trace.provenance_tracking_level": int(is_on)}):
                made[name] = compiled_step(activation)
    yield SimpleNamespace(**made)
    torch._dynamo.reset()


def profiler_names(step):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    return sorted(event.name() for event in profiler.profiler.kineto_results.events() if "fused" in event.name())


def self_time_us(trace, kind):
    times = time_by_kind(trace.ops)
    return float(times.loc[times["kind"] == kind, "self_time_us"].sum())


def test_the_time_of_kernels_that_are_no_rows_is_the_region_s_and_said(steps):
    assert profiler_names(steps.hidden) == []
    trace = timed(steps.hidden)
    assert trace.meta["notes"] == [HIDDEN_KERNELS]
    regions = trace.ops[trace.ops["op"].str.match("Torch-Compiled Region|CompiledFunction")]
    assert regions["self_time_us"].sum() > 0
    assert self_time_us(trace, "compiled") == pytest.approx(regions["self_time_us"].sum())
    (section,) = [section for section in time_sections(trace, 9) if section.title == "In ops and between them"]
    assert "compiled regions: fused kernels, and Python around them" in [label for label, *_ in section.rows]


def test_a_region_of_another_backend_has_no_fused_kernels_and_nothing_is_said(steps):
    compiled = torch.compile(lambda x: x.sin() + 2, backend="eager")
    compiled(torch.ones(3))
    trace = timed(lambda: compiled(torch.ones(3)))
    assert trace.ops["op"].str.startswith("Torch-Compiled Region").any()
    assert trace.meta["notes"] == []


def test_kernels_that_inductor_names_are_rows_as_the_profiler_has_them(steps):
    expected = profiler_names(steps.shown)
    trace = timed(steps.shown)
    fused = level(trace, "aten")[level(trace, "aten")["op"].str.contains("fused")]
    assert len(fused) >= 2
    assert sorted(fused["op"]) == expected
    assert sorted(fused["phase"].unique()) == ["backward", "forward"]
    assert set(trace.ops["op"].loc[fused["parent_id"]]) == {"CompiledFunction", "CompiledFunctionBackward"}
    assert fused["model"].tolist() == ["Layer"] * len(fused)
    forward = fused[fused["phase"] == "forward"]
    assert forward["source"].tolist() == [f"tests/capture/step/test_inductor.py:{LINES[1]}"]
    assert fused["source"].notna().all()
    if library() is not None:  # other ops have the line that calls the region
        assert trace.ops.loc[trace.ops["op"].str.startswith("aten.addmm"), "source"].notna().any()
    assert trace.meta["notes"] == []
    assert self_time_us(trace, "compiled") == 0.0


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("recorder", ["native", "python"])
def test_the_step_computes_the_same_bits_and_its_products_are_rows(steps, verb, recorder, monkeypatch):
    if recorder == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")
    bare = steps.shown()
    with VERBS[verb]() as trace:
        left = steps.shown()
    assert left == bare
    assert len(aten(trace, "aten.addmm")) == 1
    assert [reason for reason in trace.meta["skipped"] if reason.startswith("torch.compile region")]
    assert not aten(trace, "aten.gelu").shape[0]


def test_what_fused_kernels_give_is_neither_checked_nor_compared():
    compiled = torch.compile(lambda x: x.log() * 2)
    compiled(torch.ones(8))
    with nbkit.opcheck() as check:
        y = compiled(-torch.ones(8)) + 1
    assert y.isnan().all()
    assert check.findings[["op", "rule"]].to_numpy().tolist() == [["aten.add.Tensor", "input"]]
    with nbkit.opdiff() as diff:
        compiled(torch.ones(8))
    assert diff.diffs["op"].tolist() == ["aten.ones.default"]
