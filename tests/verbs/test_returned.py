"""opalign beside the run that a user has: outputs with outputs, and with what a call returns that nobody recorded."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import nbkit
from nbkit.trace.trace import Trace
from nbkit.views.statements.alignment import agreement_statements

X = torch.linspace(-1, 1, 48).reshape(8, 6)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4))


def compiled_wrongly(module: nn.Module) -> nn.Module:
    """Returns a module as compiled by what is wrong by one in eight."""
    return torch.compile(module, backend=lambda graph, _: lambda *args: tuple(1.125 * one for one in graph(*args)))


def first_of(trace: Trace) -> str:
    first = trace.meta["first_divergence"]
    return "" if first is None else first["message"]


def as_function(module: nn.Module) -> partial[Tensor]:
    return partial(lambda inner, x: inner(x), module)


@pytest.mark.parametrize("sides", ["right", "left", "function", "backward"])
def test_what_compiled_code_returns_is_compared(sides):
    left, right = model().eval(), compiled_wrongly(model().eval())
    if sides == "left":
        left, right = right, left
    right = as_function(right) if sides == "function" else right
    trace = nbkit.opalign(left, right, inputs=(X,), backward=sides == "backward")
    side = "left" if sides == "left" else "right"
    assert f"the compiled call of the {side} side returns, and its ops were recorded uncompiled" in first_of(trace)
    error = trace.meta["first_divergence"]["error"]
    assert error == pytest.approx(1 - 1 / 1.125 if sides == "left" else 0.125, rel=1e-5)
    assert trace.meta["first_divergence"][side]["name"] == "output [0]"
    assert [one.tone for one in agreement_statements(trace)] == ["bad"]


def test_sides_that_are_compiled_alike_agree():
    trace = nbkit.opalign(compiled_wrongly(model().eval()), compiled_wrongly(model().eval()), inputs=(X,))
    assert trace.meta["first_divergence"] is None and not trace.meta["notes"]


def test_the_call_that_nobody_records_is_put_back_too():
    trained = model()
    generator = torch.Generator().manual_seed(1)
    before = torch.get_rng_state(), generator.get_state(), trained[1].running_mean.clone()

    def step(x: Tensor) -> Tensor:
        return trained(x) + torch.randn(4, generator=generator)

    trace = nbkit.opalign(step, step, inputs=(X,))
    after = torch.get_rng_state(), generator.get_state(), trained[1].running_mean
    assert trace.meta["first_divergence"] is None and not trace.meta["notes"]
    assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))


def test_a_model_that_returns_something_else_each_time_is_said_to():
    numbers, net = np.random.default_rng(0), model().eval()
    one = nbkit.opalign(lambda x: net(x) + float(numbers.standard_normal()), net, inputs=(X,))
    assert "left: Each call returns other values" in one.meta["notes"][0]


def test_a_call_that_fails_without_a_recorder_is_a_note():
    calls = []

    def once(x: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) > 1:
            raise KeyError("only once")
        return x * 2

    trace = nbkit.opalign(lambda x: x * 2, once, inputs=(X,))
    assert trace.meta["notes"] == ["right: A call without a recording failed: KeyError: 'only once'"]


def test_under_autocast_each_run_has_gradients():
    net = model().eval()
    with torch.autocast("cpu", torch.bfloat16):
        traces = [nbkit.opalign(net, net, inputs=(X,), backward=True) for _ in range(2)]
        assert torch.is_autocast_cache_enabled()
    names = [set(trace.frames["results"]["name"]) for trace in traces]
    assert names[0] == names[1] and "grad of 0.weight" in names[0] and not traces[1].meta["notes"]


class Shifted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x + 1000) - 1000


def test_outputs_are_compared_with_outputs_where_onnxruntime_computes_float16_in_float32():
    for package in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(package)
    x = torch.tensor([[0.1, 1.3, 0.24, 0.26]]).half()
    trace = nbkit.opalign(Shifted(), "onnx", inputs=(x,))
    largest = (Shifted()(x) - x).abs().max().item()
    assert f"the outputs differ by up to {largest:.2g}" in first_of(trace)
    assert "the right side computes float16 in float32 (onnxruntime's CPU provider)" in first_of(trace)


def test_outputs_in_another_order_differ():
    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sin(), x.cos()

    assert "the outputs differ by up to" in first_of(nbkit.opalign(both, lambda x: both(x)[::-1], inputs=(X,)))
