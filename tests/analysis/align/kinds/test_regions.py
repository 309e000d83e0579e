"""What else a region may hold: other shapes, large or complex numbers, flags, own weights, what was not kept."""

import numpy as np
import pytest

from nbkit.analysis.align.kinds.find import kind_of
from nbkit.analysis.align.region import Piece
from nbkit.trace.executions.execution import Result
from tests.analysis.align.kinds.regions import (
    causal,
    layer_norm,
    masked,
    parameter,
    piece,
    randn,
    region,
    rms_norm,
    single,
)

X, Y = randn(2, 16, 32), randn(2, 16, 32, seed=1)
W, G, B = randn(32, 32, seed=2, scale=0.2), 1 + 0.3 * randn(32, seed=3), randn(32, seed=4)
GONE = Piece(Result(0, "op", "gone", "float32", X.shape), None)


def message(kind, name):
    assert kind is not None and kind.name == name
    assert kind.explained < 0.01
    return kind.message


def test_a_transposed_value_of_another_shape_is_named():
    assert "axes 0 and 1 swapped" in message(kind_of(region(X[0], X[0].T)), "transposed")
    assert kind_of(region(X[0], randn(32, 16, seed=5))) is None


def test_numbers_as_large_as_masks_are_numbers_among_their_like():
    large = 1e5 * X
    assert "2 times" in message(kind_of(region(large, 2 * large)), "scale")


def test_of_complex_numbers_both_parts_count():
    turned = X + 1j * Y
    assert "2 times" in message(kind_of(region(turned, 2 * turned)), "scale")
    assert kind_of(region(turned, 2 * X + 1j * (Y + randn(2, 16, 32, seed=6)))) is None


def test_a_value_that_was_not_kept_hides_no_other_one():
    for sides in ({"right_only": [GONE, piece("y", Y)]}, {"left_only": [GONE], "right_only": [piece("y", Y)]}):
        one = region(X, X + Y, [piece("x", X)], **sides)
        assert "left one lacks the residual y" in message(kind_of(one), "missing_residual")


@pytest.mark.parametrize(
    ("right", "sides", "words"),
    [
        (X - B, {"right_only": [parameter("b", B)]}, "right one is the left one less b."),
        (X + B, {"left_only": [parameter("b", B)]}, "right one is the left one plus b."),
        (X - B, {"left_only": [parameter("b", B)]}, "right one lacks the bias b."),
    ],
)
def test_a_vector_that_is_taken_away_is_no_bias_that_the_other_side_lacks(right, sides, words):
    assert words in message(kind_of(region(X, right, [piece("x", X)], **sides)), "missing_bias")


def test_a_rotary_base_that_no_short_number_comes_near_enough_to_is_named():
    """Of five digits 10,000 and 10,000.4 are one number."""
    inverse = [base ** (-np.arange(32) / 32) for base in (1e4, 10_000.4)]
    said = message(kind_of(region(*inverse, kind="buffer")), "rotary_base")
    assert said == "The rotary base is 10,000 on the left, 10000.4 on the right."


def test_a_mask_with_infinities_is_told_from_one_with_finite_numbers_where_it_hides_whole_rows():
    hidden = causal(16)
    hidden[:2] = True
    scores = np.zeros((16, 16), np.float32)
    said = message(kind_of(region(masked(scores, hidden, -1e9), masked(scores, hidden))), "nan")
    assert said.startswith("The right one masks with -Inf where the left one has finite numbers, 2 rows wholly: ")


def test_an_epsilon_beside_a_variance_is_named():
    x = 0.02 * X + 1
    variance = x.astype(np.float64).var(-1, keepdims=True)
    one = region(1 / np.sqrt(variance + 1e-5), 1 / np.sqrt(variance + 1e-6), [piece("x", x)])
    assert "1e-05 on the left, 1e-06 on the right" in message(kind_of(one), "epsilon")


def test_a_norm_is_told_beside_values_of_other_rows_and_flags_of_its_shape():
    others = [piece("rows", randn(3, 32, seed=7)), piece("flags", X > 0)]
    one = region(rms_norm(X, weight=G) @ W.T, X @ W.T, [*others, piece("x", X), parameter("w", W), parameter("g", G)])
    assert "normalized x" in message(kind_of(one), "norm_place")
    x = 0.02 * X
    one = region(layer_norm(x, 1e-5, G), layer_norm(x, 1e-6, G), [*others, piece("x", x), parameter("g", G)])
    assert "1e-05 on the left, 1e-06 on the right" in message(kind_of(one), "epsilon")


def test_rows_of_which_a_mask_keeps_nothing_explain_nan():
    broken, kept = X.copy(), np.ones((2, 16, 16), bool)
    broken[1, 3:5], kept[1, 3:5] = np.nan, False
    assert "64 elements" in message(kind_of(region(X, broken)), "nan")
    assert "wholly masked" not in kind_of(region(X, broken)).message
    assert "a row that is wholly masked" in kind_of(region(X, broken, [piece("kept", kept)])).message


def test_operands_are_exchanged_in_gates_and_products():
    def gated(a):
        return single(a / (1 + np.exp(-a.astype(np.float64))))

    a, b = randn(16, 16, seed=8), randn(16, 16, seed=9)
    inputs = [piece("a", a), piece("b", b)]
    found = message(kind_of(region(gated(a) * b, gated(b), inputs)), "swapped_operands")
    assert "applies silu to b, the left one to a, times the former" in found
    found = message(kind_of(region(a @ b, b @ a, inputs)), "swapped_operands")
    assert found == "The right one multiplies b by a, the left one a by b."


def test_two_weights_that_each_side_has_alone_are_not_called_one_that_both_have():
    sides = {"left_only": [parameter("mine", W)], "right_only": [parameter("other", randn(32, 32, seed=10))]}
    right = X @ sides["right_only"][0].value
    assert kind_of(region(X @ W, right, [piece("x", X)], **sides)) is None
    shared = region(X @ W, right, [piece("x", X)], **sides, agreed={"tied": W})
    assert "own, other, the left one by mine, which both have" in message(kind_of(shared), "untied_weight")


def test_rows_that_come_in_again_at_the_other_end_are_no_positions():
    table = region(X[0], np.concatenate([X[0, 1:], randn(1, 32, seed=11)]))
    assert "shifted by 1" in message(kind_of(table), "position_shifted")
    assert kind_of(region(X[0], np.roll(X[0], -1, axis=0))) is None
    assert "16 heads in the order 1, 2, 3" in message(kind_of(region(X, np.roll(X, -1, axis=1))), "permuted_heads")
