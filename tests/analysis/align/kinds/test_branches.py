"""A fault before known steps of a region is named although only what these make of it is compared."""

from dataclasses import replace

import pytest

from nbkit.analysis.align.kinds.activations import FUNCTIONS
from nbkit.analysis.align.kinds.find import kind_of
from tests.analysis.align.kinds.regions import noisy, parameter, piece, randn, region, rms_norm, single

X = randn(2, 16, 32) * (0.01 + abs(randn(2, 16, 1, seed=2)))
GATE, UP = randn(64, 32, seed=1, scale=0.2), randn(64, 32, seed=2, scale=0.2)
DOWN, WEIGHT, BIAS = randn(32, 64, seed=3, scale=0.2), 1 + 0.2 * randn(32, seed=4), randn(32, seed=5)
OTHER = randn(2, 16, 32, seed=7)
PARAMETERS = {"gate.w": GATE, "up.w": UP, "down.w": DOWN, "norm.w": WEIGHT, "bias": BIAS}


def block(function="silu", epsilon=1e-5, factor=1.0, is_normed=True, is_swapped=False):
    """Returns the result of a decoder's MLP with its residual, and all that was made on the way."""
    steps = {"n": rms_norm(X, epsilon, WEIGHT) if is_normed else X}
    steps["g"], steps["u"] = (steps["n"] @ one.T for one in (GATE, UP))
    first, second = (steps["u"], steps["g"]) if is_swapped else (steps["g"], steps["u"])
    steps["act"] = single(FUNCTIONS[function](first.astype("float64")))
    steps["h"] = steps["act"] * second
    steps["mlp"] = steps["h"] @ DOWN.T + BIAS
    return X + factor * steps["mlp"], [piece(name, value) for name, value in steps.items()]


FAULTS = {
    "activation": ({"function": "gelu"}, "g is silu on the left and gelu on the right"),
    "swapped_operands": ({"is_swapped": True}, "applies silu to u, the left one to g"),
    "scale": ({"factor": 0.5}, "right one adds mlp times 0.5"),
    "missing_residual": ({"factor": 0.0}, "right one lacks the residual mlp"),
}


def faulty(**changes):
    (left, steps), (right, _) = block(), block(**changes)
    inputs = [piece("x", X), *(parameter(name, value) for name, value in PARAMETERS.items())]
    return region(left, single(right), inputs, left_ops=steps)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_in_a_block_is_named(name):
    changes, words = FAULTS[name]
    kind = kind_of(noisy(faulty(**changes)))
    assert kind is not None
    assert kind.name == name
    assert words in kind.message


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_named_where_the_left_is_fused(name):
    one = faulty(**FAULTS[name][0])
    kind = kind_of(replace(one, left=one.right, right=one.left, left_ops=(), right_ops=one.left_ops))
    assert kind is not None
    assert kind.name == name


def normed(rows):
    """Returns a product of a normalized input, which only one side shows."""
    steps = [piece("n", rms_norm(X, 1e-5, WEIGHT))]
    inputs = [piece("x", X), parameter("up.w", UP)]
    return region(steps[0].value @ UP.T, rows @ UP.T, inputs, left_ops=steps)


def test_epsilon_before_a_product_is_named():
    kind = kind_of(normed(rms_norm(X, 1e-3, WEIGHT)))
    assert kind is not None
    assert kind.name == "epsilon"
    assert "1e-05 on the left, 0.001 on the right" in kind.message


def test_norm_before_a_product_is_named():
    kind = kind_of(normed(X))
    assert kind is not None
    assert kind.name == "norm_place"


@pytest.mark.parametrize("seed", range(5))
def test_unrelated_block_has_no_kind(seed):
    one = faulty()
    assert kind_of(noisy(one, 1e-3, seed)) is None
    assert kind_of(replace(one, right=one.left + randn(2, 16, 32, seed=60 + seed))) is None


@pytest.mark.parametrize("carry", [lambda rows: rows * OTHER, lambda rows: rows @ UP.T], ids=["factor", "product"])
def test_a_residual_before_a_step_that_is_known_is_named(carry):
    steps = [piece("mlp", randn(2, 16, 32, seed=6)), piece("sum", X + randn(2, 16, 32, seed=6))]
    inputs = [piece("x", X), piece("other", OTHER), parameter("up.w", UP)]
    kind = kind_of(region(carry(steps[1].value), carry(X), inputs, left_ops=steps))
    assert kind is not None and kind.name == "missing_residual" and kind.explained < 1e-3
    assert kind.message == "The right one lacks mlp, which the left one adds."
