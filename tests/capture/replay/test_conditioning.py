"""How much the smallest change of the inputs does: draws that add up, and are the same for each result of a call."""

import torch

from nbkit.capture.replay.op_traits import traits_of
from nbkit.capture.replay.reference import Reference

X = torch.linspace(-1, 1, 64).reshape(8, 8)
EPS = 2.0**-23


def call_of(op, *args):
    return Reference("cpu").copy(traits_of(op), args, {})


def test_more_draws_change_no_less():
    call = call_of(torch.ops.aten.mm.default, X, X)
    one, eight = (call.conditioning(draws, EPS)[0].clone() for draws in (1, 8))
    assert bool((eight >= one).all())
    assert bool((eight > one).any())
    assert 0 < float(one.max()) < 8 * EPS


def test_fewer_draws_are_the_first_of_those_made():
    first, second = (call_of(torch.ops.aten.var_mean.correction, X, [1]) for _ in range(2))
    one = [result.clone() for result in first.conditioning(1, EPS)]
    first.conditioning(8, EPS)
    assert all(map(torch.equal, first.conditioning(1, EPS), one))
    assert all(map(torch.equal, second.conditioning(8, EPS), first.conditioning(0, EPS)))
