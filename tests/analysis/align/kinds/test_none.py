"""What is of no kind gets no name: a wrong one costs more than none."""

from dataclasses import replace

import numpy as np
import pytest

from nbkit.analysis.align.kinds.find import kind_of
from tests.analysis.align.kinds.planted import ALL
from tests.analysis.align.kinds.regions import halved, noisy, parameter, piece, randn, region, softmax

OPS = [one for one in ALL if one.region.kind == "op"]
IDS = [f"{one.kind}: {one.name}" for one in OPS]
SHAPES = [(2, 4, 16, 8), (2, 16, 32), (64, 32), (16, 16), (128,), (4, 1)]
# What cannot be told once other elements have been added, as its values are not used.
FREE = ("mask_inverted", "nan")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("shape", SHAPES)
def test_unrelated_values_have_no_kind(shape, seed):
    left, right = randn(*shape, seed=100 + seed), randn(*shape, seed=200 + seed)
    inputs = [piece("x", randn(*shape, seed=300 + seed)), piece("y", randn(*shape, seed=400 + seed))]
    inputs += [parameter("w", randn(shape[-1], shape[-1], seed=seed)), parameter("b", randn(shape[-1], seed=seed))]
    assert kind_of(region(left, right, inputs)) is None


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("level", [1e-7, 1e-5, 1e-3, 0.1])
def test_noise_has_no_kind(level, seed):
    left = randn(2, 16, 32, seed=seed)
    one = region(left, left, [piece("x", left * 3), piece("y", randn(2, 16, 32, seed=50 + seed))])
    assert kind_of(noisy(one, level, seed)) is None


@pytest.mark.parametrize("planted", OPS, ids=IDS)
def test_no_difference_has_no_kind(planted):
    assert kind_of(replace(planted.region, right=planted.region.left)) is None


@pytest.mark.parametrize("planted", OPS, ids=IDS)
def test_rounding_has_no_kind(planted):
    if not np.isfinite(planted.region.left).all() or planted.region.left.dtype != np.float32:
        return
    same = replace(planted.region, right=planted.region.left)
    assert kind_of(noisy(same, 3e-7)) is None
    assert kind_of(halved(noisy(same, 2e-3))) is None


@pytest.mark.parametrize("planted", OPS, ids=IDS)
def test_a_second_fault_leaves_the_kind_or_none(planted):
    right = planted.region.right
    if right.dtype != np.float32 or right.size < 16 or planted.kind in FREE:
        return
    with np.errstate(all="ignore"):
        level = np.sqrt(np.mean(np.square(right[np.isfinite(right) & (np.abs(right) < 1e4)])))
    kind = kind_of(replace(planted.region, right=right + randn(*right.shape, seed=77) * level / 2))
    assert kind is None


def test_what_is_more_than_an_exchange_of_operands_has_no_kind():
    a, b, c = (randn(2, 16, 32, seed=seed) for seed in (6, 7, 8))
    inputs = [piece("a", a), piece("b", b), piece("c", c)]
    assert kind_of(region(a, b, inputs)) is None
    assert kind_of(region(np.tanh(a), np.tanh(b) * c, inputs)) is None


def test_a_parameter_or_a_mask_that_one_side_adds_is_no_residual():
    x, w = randn(16, 32), randn(16, 32, seed=5)
    for added in (parameter("w", w), piece("mask", w > 0)):
        inputs = [piece("x", x), added]
        assert kind_of(region(x + added.value, x, inputs)) is None
        assert kind_of(region(x, x + added.value, inputs)) is None


def test_random_probabilities_have_no_kind():
    assert kind_of(region(softmax(randn(2, 4, 16, 16)), softmax(randn(2, 4, 16, 16, seed=3)))) is None


def test_empty_values_have_no_kind():
    assert kind_of(region(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32))) is None


def test_other_shapes_have_no_kind():
    assert kind_of(region(randn(4, 6), randn(5, 7))) is None
    assert kind_of(region(randn(4, 6), randn(24))) is None
