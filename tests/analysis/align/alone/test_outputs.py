"""What one side returns in addition is no divergence, if all that both return agrees; what differs still is one."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import nbkit

LAYERS = nn.Linear(4, 4), nn.Linear(4, 4)
X = torch.linspace(-1, 1, 40).reshape(2, 5, 4)
Made = Callable[[Tensor, Tensor], object]


def found(left: Made, right: Made, **options: bool) -> nbkit.Trace:
    """Returns the alignment of two functions of a hidden result and the result behind it."""

    class Model(nn.Module):
        def __init__(self, made: Made) -> None:
            super().__init__()
            self.first, self.second, self.made = *LAYERS, made

        def forward(self, x: Tensor) -> object:
            hidden = self.first(x)
            return self.made(hidden, self.second(hidden))

    return nbkit.opalign(Model(left), Model(right), inputs=X, **options)


@pytest.mark.parametrize(
    "more",
    [
        lambda h, y: (y, h[:, -2:]),
        lambda h, y: (y, h.mean()),
        lambda h, y: (h.cumsum(0), y),
        lambda h, y: {"logits": y, "cache": [(h * 2, h.cumsum(1))]},
    ],
)
def test_a_result_that_one_side_returns_in_addition_is_a_note(more):
    for sides, name in (((more, lambda h, y: y), "left"), ((lambda h, y: y, more), "right")):
        trace = found(*sides)
        assert trace.meta["first_divergence"] is None
        (note,) = trace.meta["notes"]
        assert note.startswith(f"{name}: the other side does not return ")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda h, y: (y, h * 2), lambda h, y: (y, h * 3)),
        (lambda h, y: (y, h[:, -2:]), lambda h, y: y * 1.5),
        (lambda h, y: (y, h.cumsum(0)), lambda h, y: (y, h.sort()[0])),
        (lambda h, y: (y, h.cumsum(0)), lambda h, y: (y, y)),
        (lambda h, y: (y, h.cumsum(0), h.mean()), lambda h, y: (y, y)),
    ],
)
def test_a_result_that_differs_beside_others_is_a_divergence(left, right):
    assert found(left, right).meta["first_divergence"] is not None
    assert found(right, left).meta["first_divergence"] is not None


def test_a_gradient_that_one_side_alone_has_is_a_divergence():
    trace = found(lambda h, y: y.tanh(), lambda h, y: LAYERS[1](h.detach()).tanh(), backward=True)
    assert trace.meta["first_divergence"] is not None


def test_what_both_return_in_the_same_place_and_one_side_casts_is_not_alone():
    trace = found(lambda h, y: (y, h), lambda h, y: (y.double(), h.clone()))
    assert trace.meta["first_divergence"] is None and trace.meta["notes"] == []
