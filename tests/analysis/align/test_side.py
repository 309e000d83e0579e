"""Values as they are compared: what masks out scores does not drown their differences."""

import numpy as np
import pytest

from nbkit.analysis.align.side import Side, with_infinities
from tests.analysis.align.makers import execution

SCORES = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)


@pytest.mark.parametrize("masked", [0.1, 0.49, 0.9])
def test_what_is_masked_out_is_infinite_however_much_it_is(masked):
    is_masked = np.random.default_rng(1).random(SCORES.shape) < masked
    found = with_infinities(SCORES - 1e4 * is_masked.astype(np.float32))
    assert np.array_equal(np.isneginf(found), is_masked)
    assert np.allclose(found[~is_masked], SCORES[~is_masked])


def test_large_numbers_beside_large_ones_stay():
    for value in (SCORES * 1e4, np.linspace(0, 2e4, 1_000, dtype=np.float32), np.full(8, 1e5, np.float32)):
        assert with_infinities(value) is not None and np.array_equal(with_infinities(value), value)


MASK = np.where(np.eye(64, dtype=bool), np.float32(0), np.float32(-1e4))


def masked(*, last: str) -> Side:
    """Scores with a mask, then `last`."""
    steps = [("scores", None, [], SCORES), ("mask", None, [], MASK), ("sum", "Add", ["scores", "mask"], SCORES + MASK)]
    return Side(execution(*steps, ("y", last, ["sum"], SCORES)))


@pytest.mark.parametrize(("last", "is_masked"), [("Softmax", True), ("Exp", True), ("Tanh", False), ("MatMul", False)])
def test_what_is_huge_is_infinite_only_on_the_way_to_a_softmax(last, is_masked):
    side = masked(last=last)
    assert [bool(np.isneginf(side.value(number)).any()) for number in range(3)] == [False, is_masked, is_masked]


def test_scores_that_something_else_reads_too_are_numbers():
    found = execution(
        ("scores", None, [], SCORES + MASK),
        ("shares", "Softmax", ["scores"], SCORES),
        ("y", "Mul", ["scores", "shares"], SCORES),
    )
    assert np.isfinite(Side(found).value(0)).all()


def test_queries_and_keys_are_numbers_and_the_mask_of_attention_is_none():
    inputs = [(name, None, [], SCORES - 1e4 * (SCORES > 1)) for name in "qkvm"]
    side = Side(execution(*inputs, ("y", "Attention", ["q", "k", "v", "m"], SCORES)))
    assert [bool(np.isinf(side.value(number)).any()) for number in range(4)] == [False, False, False, True]


def test_positive_numbers_are_numbers():
    assert np.isfinite(with_infinities(SCORES + 1e4 * (SCORES > 1))).all()
