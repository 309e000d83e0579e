"""Modules that make their parameters at the first call cannot be counted before; they stay as they are."""

import pytest
import torch
from torch import nn
from torch.nn.parameter import is_lazy

import nbkit


def lazy_model():
    return nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))


@pytest.mark.parametrize("counts", [nbkit.cost_table, lambda model, x: nbkit.opcost().run(lambda: model(x))])
def test_a_model_without_shapes_is_refused_and_stays_as_it_was(counts):
    model, x = lazy_model(), torch.randn(4, 3, 8, 8)
    with pytest.raises(nbkit.CostError, match=r"nn\.Lazy\* has parameters without a shape, in 0 at .*; call the model"):
        counts(model, x)
    assert all(map(is_lazy, [*model.parameters(), model[1].running_mean]))
    expected = model(x)  # makes them
    counts(model, x)
    assert model(x).shape == expected.shape == (4, 2)


def test_the_op_that_takes_such_a_parameter_has_no_shapes():
    recorder, model = nbkit.opcost(), lazy_model()
    with pytest.raises(nbkit.CostError), recorder as trace:
        torch.ones(2, 5).exp()
        model(torch.randn(4, 3, 8, 8))
    shapes = trace.ops.set_index("op")["input_shapes"]
    assert shapes["aten.exp.default"] == "[[2, 5]]" and shapes.iloc[-1:].isna().all()
    assert not trace.complete and "nn.Lazy*" in trace.meta["error"]["message"]


def test_a_step_that_does_not_call_them_is_counted():
    model = nn.ModuleDict({"made": nn.Linear(3, 4), "lazy": nn.LazyLinear(2)})
    model.forward = lambda x: model["made"](x).sum()
    trace = nbkit.opcost().run(lambda: model(torch.randn(5, 3)).backward())
    assert trace.complete and trace.costs["flops"].sum() > 0


@pytest.mark.parametrize("make", [lazy_model, lambda: nn.LazyBatchNorm2d(affine=False)])
def test_a_function_that_makes_them_is_told_what_to_do(make):
    with pytest.raises(nbkit.CostError, match=r"makes modules of nn\.Lazy\*.*; make the model before"):
        nbkit.cost_table(make, torch.randn(4, 3, 8, 8))


def test_another_error_of_such_a_function_is_its_own():
    with pytest.raises(RuntimeError, match="mine"):
        nbkit.cost_table(lambda: (_ for _ in ()).throw(RuntimeError("mine")), torch.randn(1))
