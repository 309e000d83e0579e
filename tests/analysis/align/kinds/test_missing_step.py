"""Steps that one side has and the other one leaves out are named, and constants by the op that computes with them."""

import pytest
import torch
from torch import nn

import nbkit

X = torch.randn(3, 6, 16, generator=torch.Generator().manual_seed(1))


class Between(nn.Module):
    """Two layers with something between them."""

    def __init__(self, does):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.last = nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 4)
        nn.init.normal_(self.norm.weight)
        self.does = does

    def forward(self, x):
        return self.last(self.does(self, self.first(x)))


def plain(_, y):
    return y


@pytest.mark.parametrize(
    ("does", "steps"),
    [
        (lambda model, y: model.norm(y), "native_layer_norm[0]"),
        (lambda _, y: y.flip(1), "flip"),
        (lambda _, y: torch.tanh(y / 1.5) * 1.5, "div, tanh, mul"),
    ],
)
def test_steps_that_one_side_leaves_out_are_named(does, steps):
    for sides in (("left", "right"), ("right", "left")):
        models = [Between(does), Between(plain)]
        first = nbkit.opalign(*models[:: 1 if sides[0] == "left" else -1], inputs=(X,)).meta["first_divergence"]
        assert first["kind"] == "missing_step"
        assert (
            f"The {sides[1]} one reads addmm as it is, where the {sides[0]} one has {steps} between."
            in (first["message"])
        )
        assert first[sides[0]]["name"] == steps.split(", ")[0]


def test_steps_that_are_others_on_both_sides_are_not_left_out():
    first = nbkit.opalign(Between(lambda _, y: y.sin()), Between(lambda _, y: y.cos() + 1), inputs=(X,))
    assert first.meta["first_divergence"]["kind"] != "missing_step"


def test_a_constant_of_several_numbers_is_told_where_it_is_read():
    def times(last):
        numbers = torch.tensor([0.1, 0.2, 0.3, last])
        return lambda _, y: y * numbers.repeat(8)

    first = nbkit.opalign(Between(times(0.4)), Between(times(0.5)), inputs=(X,)).meta["first_divergence"]
    assert (first["left"]["kind"], first["right"]["kind"]) == ("op", "op")
    assert "has other values on the right" in first["message"] and "which it reads" in first["message"]
