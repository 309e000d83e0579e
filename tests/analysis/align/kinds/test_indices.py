"""Integers that an op reads are compared like all else: indices, positions, places and axes that differ are named."""

import pytest
import torch
from torch import nn

import nbkit


class Positions(nn.Module):
    """Adds an embedding of positions, which are counted in a way of its own."""

    def __init__(self, count) -> None:
        super().__init__()
        self.table, self.count = nn.Embedding(20, 8), count

    def forward(self, ids):
        return self.table(self.count(ids).clamp(min=0)) + 0 * ids[..., None].float()


class Behind(nn.Module):
    def __init__(self, does) -> None:
        super().__init__()
        self.linear, self.does = nn.Linear(8, 8), does

    def forward(self, x):
        return self.does(self.linear(x))


def first_of(left, right, *inputs):
    right.load_state_dict(left.state_dict())
    return nbkit.opalign(left, right, inputs=inputs).meta["first_divergence"]


def from_mask(ids):
    return (ids != 0).long().cumsum(-1) - 1


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("is_broadcast", [False, True])
def test_positions_that_are_counted_otherwise_are_named_where_they_are_made(is_turned, is_broadcast):
    def counted(ids):
        return torch.arange(ids.shape[1]) if is_broadcast else torch.arange(ids.shape[1]).repeat(2, 1)

    ids = torch.tensor([[1, 2, 3, 4], [0, 0, 3, 4]])
    ways = [from_mask, counted][:: -1 if is_turned else 1]
    first = first_of(*map(Positions, ways), ids)
    lists = ["0, 0, 0, 1", "0, 1, 2, 3"][:: -1 if is_turned else 1]
    made = ["ids", "no input"][:: -1 if is_turned else 1]
    assert first["kind"] == "other_indices"
    assert f"are {lists[0]} on the left, {lists[1]} on the right in row 1; 3 of 8 differ" in first["message"]
    assert f"The left ones are made of {made[0]}, the right ones of {made[1]}." in first["message"]
    ops = {first[side]["op"] for side in ("left", "right")}
    assert "aten.sub.Tensor" in ops and "aten.embedding.default" not in ops


def test_positions_that_are_expanded_before_they_are_read_are_named():
    def positions(count):
        model = Positions(count)
        model.forward = lambda ids: model.table(count(ids))
        return model

    ids = torch.tensor([[1, 2, 3, 4], [0, 0, 3, 4]])
    left, right = (
        positions(lambda ids: from_mask(ids).clamp(min=0)),
        positions(lambda ids: torch.arange(4).expand(2, 4)),
    )
    first = first_of(left, right, ids)
    assert first["kind"] == "other_indices"
    assert "are 0, 0, 0, 1 on the left, 0, 1, 2, 3 on the right in row 1; 3 of 8 differ" in first["message"]


@pytest.mark.parametrize(
    ("does", "op", "other"),
    [
        (lambda y, at: y.index_select(1, torch.tensor([0, 2, at])), "index_select", "0, 2, 4"),
        (lambda y, at: y[:, torch.tensor([0, 2, at])].tanh(), "index", "0, 2, 4"),
        (lambda y, at: y.gather(1, torch.tensor([1, at]).view(2, 1, 1)), "gather", "1, 4"),
    ],
)
def test_indices_that_the_program_holds_are_named_at_the_op_that_reads_them(does, op, other):
    first = first_of(Behind(lambda y: does(y, 3)), Behind(lambda y: does(y, 4)), torch.randn(2, 5, 8))
    assert first["kind"] == "other_indices"
    assert first["left"]["name"] == first["right"]["name"] == op
    assert f"The integers that {op} reads are " in first["message"] and "differ" in first["message"]


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (lambda y: y.roll(1, 1), lambda y: y.roll(-1, 1), "argument shifts of aten.roll.default is [1]"),
        (lambda y: y[:, 1:4] * 2, lambda y: y[:, 2:5] * 2, "start is 1 on the left, 2 on the right"),
        (lambda y: y.mean(1), lambda y: y.mean(2), "argument dim of aten.mean.dim is [1] on the left, [2] on"),
        (lambda y: y[:, :, :5].sum(1), lambda y: y[:, :, :5].sum(2), "argument dim of aten.sum.dim_IntList is [1]"),
    ],
)
def test_axes_places_and_steps_that_are_no_tensors_are_named(left, right, words):
    first = first_of(Behind(left), Behind(right), torch.randn(2, 5, 8))
    assert first["kind"] == "argument" and words in first["message"]
    assert "it reads the same on both sides" in first["message"]


def test_the_same_axis_counted_from_the_other_end_is_no_argument_that_differs():
    assert first_of(Behind(lambda y: y.mean(1)), Behind(lambda y: y.mean(-2)), torch.randn(2, 5, 8)) is None
    first = first_of(Behind(lambda y: y.flip(1)), Behind(lambda y: y.flip(-2) * 1.5), torch.randn(2, 5, 8))
    assert first["kind"] != "argument"


def test_an_op_that_reads_another_mask_does_not_read_the_same():
    def kept(limit):
        return lambda y: torch.where(torch.arange(40).reshape(5, 8) % 7 < limit, y, 0.5)

    first = first_of(Behind(kept(3)), Behind(kept(4)), torch.randn(2, 5, 8))
    assert "reads the same" not in first["message"] or first["left"]["op"] != "aten.where.self"
