"""Values over many decades: a kind holds at each element, or it is not named; a norm sees the largest ones alone."""

import itertools

import numpy as np
import pytest
import torch

import nbkit
from nbkit.analysis.align.kinds.find import kind_of
from tests.analysis.align.kinds.regions import piece, region

DECADES = np.float32(10.0) ** np.random.default_rng(3).uniform(-6, 6, (16, 16)).astype(np.float32)
SIGNED = DECADES * np.random.default_rng(4).choice([-1, 1], DECADES.shape).astype(np.float32)
OPS = {
    "exp2": lambda x: np.exp2(np.minimum(x, 60)),
    "root": lambda x: np.sqrt(np.abs(x)),
    "log1p": lambda x: np.log1p(np.abs(x)),
    "sin": np.sin,
    "arctan": np.arctan,
    "arcsinh": np.arcsinh,
    "hypot": lambda x: np.hypot(x, np.float32(1)),
    "over": lambda x: 1 / (np.abs(x) + np.float32(1e-3)),
}
# What both sides do behind.
BEHIND = {
    "plus one": lambda y, x: y + np.float32(1),
    "plus": lambda y, x: y + x,
    "times": lambda y, x: y * x,
}
PAIRS = [*itertools.permutations(OPS, 2)]


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("values", ["positive", "signed"])
def test_two_ops_that_are_not_each_other_have_no_kind(values, behind):
    """Of two of these ops none is the other times a number, plus a vector, behind a norm, or in another order."""
    x, named = {"positive": DECADES, "signed": SIGNED}[values], {}
    for at in np.random.default_rng([len(values), len(behind)]).choice(len(PAIRS), 9, replace=False):
        made = [OPS[one](x) for one in PAIRS[at]]
        inner = [piece(one, value) for one, value in zip(PAIRS[at], made, strict=True)]
        sides = [BEHIND[behind](value, x) for value in made]
        kind = kind_of(region(*sides, [piece("x", x)], left_ops=inner[:1], right_ops=inner[1:]))
        if kind is not None:
            named[PAIRS[at]] = kind.message
    assert named == {}


@pytest.mark.parametrize("top", [9.0, 10.0, 11.0, 11.1])
def test_the_base_of_an_exponential_is_no_factor_and_no_tanh(top):
    x = torch.linspace(0.1, top, 32).reshape(4, 8)
    first = nbkit.opalign(lambda x: x.exp() + 1, lambda x: x.exp2() + 1, inputs=[x]).meta["first_divergence"]
    assert (first["left"]["name"], first["right"]["name"], first["kind"]) == ("exp", "exp2", None)


@pytest.mark.parametrize("size", [3, 300])
def test_a_square_is_no_exchanged_operand(size):
    x = torch.rand(4, 8, generator=torch.Generator().manual_seed(0)) + 0.5
    first = nbkit.opalign(lambda x: (x * size).square() + 1, lambda x: (x * size).abs() + 1, inputs=[x]).meta[
        "first_divergence"
    ]
    assert first["kind"] is None


@pytest.mark.parametrize("name", ["scale", "activation", "missing_residual", "missing_bias"])
def test_kinds_that_hold_at_each_element_are_named(name):
    x, bias = SIGNED, DECADES[0] + 1
    sides = {
        "scale": (x, np.float32(1.3) * x),
        "activation": (np.maximum(x, 0), np.where(x > 0, x, np.float32(0.01) * x)),
        "missing_residual": (np.tanh(x), np.tanh(x) + x),
        "missing_bias": (x, x + bias),
    }[name]
    known = [piece("x", x), piece("b", bias)]
    kind = kind_of(region(*sides, known))
    assert kind is not None and kind.name == name
