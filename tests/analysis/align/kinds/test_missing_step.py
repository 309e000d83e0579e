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


class Last(Between):
    """Ends with what stands between."""

    def forward(self, x):
        return self.does(self, self.first(x))


@pytest.mark.parametrize(
    ("does", "steps"),
    [
        (lambda model, y: model.norm(y), "native_layer_norm[0]"),
        (lambda _, y: y.log_softmax(-1), "_log_softmax"),
        (lambda model, y: model.last(y), "addmm_1"),
        (lambda _, y: torch.tanh(y / 1.5) * 1.5, "div, tanh, mul"),
    ],
)
def test_steps_before_the_output_that_one_side_leaves_out_are_named(does, steps):
    for more, less in (("left", "right"), ("right", "left")):
        models = [Last(does), Last(plain)]
        first = nbkit.opalign(*models[:: 1 if more == "left" else -1], inputs=(X,)).meta["first_divergence"]
        assert first["kind"] == "missing_step"
        assert first["message"] == (
            f"only the {more} one has it. The {less} one returns addmm as it is, where the {more} one has {steps} "
            "between."
        )
        assert (first[more]["name"], first[less]) == (steps.split(", ")[0], None)


def test_an_output_of_another_step_is_not_left_out():
    pairs = [(lambda _, y: y.sin(), lambda _, y: y.cos()), (lambda _, y: y.sin(), lambda _, y: y.cos() * 2)]
    for left, right in pairs:
        first = nbkit.opalign(Last(left), Last(right), inputs=(X,)).meta["first_divergence"]
        assert first["kind"] != "missing_step"


def test_a_further_output_is_no_step_of_another_one():
    trace = nbkit.opalign(Last(lambda _, y: (y, y.sin())), Last(lambda _, y: (y, y)), inputs=(X,))
    assert "where the left one has sin between" in trace.meta["first_divergence"]["message"]
    trace = nbkit.opalign(Last(lambda _, y: (y, y.sin())), Last(plain), inputs=(X,))
    assert trace.meta["first_divergence"] is None


@pytest.mark.parametrize("turned", [lambda y: y.roll(1, 2), lambda y: y.roll(2, 2)])
def test_a_roll_between_heads_is_a_step_and_another_order_of_them_is_none(turned):
    def heads(order):
        return lambda _, y: order(y.unflatten(-1, (4, 8))).flatten(2)

    first = nbkit.opalign(Between(heads(turned)), Between(plain), inputs=(X,)).meta["first_divergence"]
    assert first["kind"] == "missing_step"
    assert "The right one reads addmm as it is, where the left one has roll between." in first["message"]
    mixed = Between(heads(lambda y: y[:, :, [2, 0, 3, 1]]))
    first = nbkit.opalign(mixed, Between(plain), inputs=(X,)).meta["first_divergence"]
    assert first["kind"] == "permuted_heads"


def rms(rescale, eps=1e-5):
    """A norm of rows, one element of each 300 times as large, that are rescaled first."""

    def norm(_, y):
        y = rescale(torch.cat([y[..., :1] * 300, y[..., 1:]], -1))
        return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)

    return norm


def by_largest(y):
    return y / y.abs().amax(-1, keepdim=True)


def test_rows_that_are_divided_before_a_norm_squares_them_are_named_with_what_becomes_of_its_epsilon():
    steps = (
        "The {} one reads cat as it is, where the {} one has abs, amax, div between. So the {} one's epsilon acts as"
    )
    for more, less in (("right", "left"), ("left", "right")):
        models = [Between(rms(by_largest)), Between(rms(lambda y: y))]
        first = nbkit.opalign(*models[:: 1 if more == "left" else -1], inputs=(X,)).meta["first_divergence"]
        assert (first["kind"], first[more]["name"]) == ("missing_step", "abs")
        assert steps.format(less, more, more) in first["message"]


def test_a_norm_with_another_epsilon_or_divided_on_both_sides_divides_nothing_more():
    first = nbkit.opalign(Between(rms(by_largest)), Between(rms(by_largest, 1e-3)), inputs=(X,)).meta[
        "first_divergence"
    ]
    assert first["kind"] != "missing_step" and "acts as" not in first["message"]
    trace = nbkit.opalign(Between(rms(by_largest)), Between(rms(by_largest)), inputs=(X,))
    assert trace.meta["first_divergence"] is None


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
