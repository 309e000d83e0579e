"""Gradients of values that lie exactly on the border of a clamp."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nbkit


class Bent(nn.Module):
    def __init__(self, bend):
        super().__init__()
        self.linear, self.bend = nn.Linear(4, 4), bend
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return (self.bend(self.linear(x)) * torch.tensor([1.1, 2.5, -3.3, 4.7])).sum()


ON_BORDERS = (
    torch.arange(-4.0, 16.0).repeat(5)[torch.randperm(100, generator=torch.Generator().manual_seed(0))].reshape(-1, 4)
    / 2
)


@pytest.mark.parametrize(
    ("left", "right", "ends"),
    [
        (F.hardtanh, lambda x: x.clamp(-1, 1), "-1 or 1"),
        (F.relu6, lambda x: x.clamp(0, 6), "0 or 6"),
    ],
)
def test_other_gradients_on_the_border_are_named_with_its_values(left, right, ends):
    models = Bent(left), Bent(right)
    gradients = [torch.autograd.grad(model(ON_BORDERS), model.linear.bias)[0] for model in models]
    assert not gradients[0].equal(gradients[1])
    first = nbkit.opalign(*models, inputs=(ON_BORDERS,), backward=True).meta["first_divergence"]
    assert first["kind"] == "border"
    assert f"is exactly {ends}." in first["message"]


def test_beside_the_border_the_two_agree():
    models = Bent(F.hardtanh), Bent(lambda x: x.clamp(-1, 1))
    trace = nbkit.opalign(*models, inputs=(ON_BORDERS * 1.01 + 0.001,), backward=True)
    assert trace.meta["first_divergence"] is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda x: x.max(-1).values, lambda x: x.amax(-1)),
        (lambda x: x.amax(-1), lambda x: x.max(-1).values),
        (lambda x: x.cummax(-1).values[..., -1], lambda x: x.amax(-1)),
    ],
)
def test_other_gradients_of_a_largest_value_that_is_there_twice_are_a_border(left, right):
    class Largest(nn.Module):
        def __init__(self, reduce):
            super().__init__()
            self.weight, self.reduce = nn.Parameter(torch.ones(4)), reduce

        def forward(self, x):
            return (self.reduce(x * self.weight) ** 2).sum()

    x = torch.tensor([[3.0, 1.0, 2.0, 0.0], [1.0, 2.0, 5.0, 5.0], [4.0, 0.0, 4.0, 1.0], [1.0, 6.0, 2.0, 3.0]])
    models = Largest(left), Largest(right)
    gradients = [torch.autograd.grad(model(x), model.weight)[0] for model in models]
    assert not gradients[0].equal(gradients[1])
    first = nbkit.opalign(*models, inputs=(x,), backward=True).meta["first_divergence"]
    assert first["kind"] == "border" and "value along axis 1 several times" in first["message"]
    assert first["left"]["op"] != "aten.mul.Tensor"  # the one behind, which both sides have
    x[1, 3], x[2, 0] = 4.0, 5.0
    assert nbkit.opalign(*models, inputs=(x,), backward=True).meta["first_divergence"] is None
