"""Tests noise ratios of single elements, tolerances, and how accumulation may grow."""

import numpy as np
import pytest

from nbkit.numerics.noise_ratio import (
    Allowance,
    allowance,
    growth,
    noise_ratios,
    outside,
    running_growth,
    summed,
    where_not_finite,
)
from nbkit.numerics.precision import PRECISIONS

F32, BF16 = PRECISIONS["float32"], PRECISIONS["bfloat16"]
ONE, ZERO = np.ones(1), np.zeros(1)


def test_the_ratio_sets_the_error_against_conditioning_and_dtype():
    actual = ONE + 8 * F32.eps
    assert abs(noise_ratios(actual, ONE, ZERO, F32)[0] - 4) < 1e-6
    assert abs(noise_ratios(actual, ONE, ONE * 3 * F32.eps, F32)[0] - 1) < 1e-6


def test_an_element_that_cancels_is_judged_by_its_tensor():
    actual, expected = np.array([1000.0, 1e-4]), np.array([1000.0, 0.0])
    assert noise_ratios(actual, expected, np.zeros(2), F32).max() < 2


def test_nan_on_one_side_is_infinitely_wrong():
    assert noise_ratios(np.array([np.nan]), ONE, ONE, F32)[0] == np.inf
    assert noise_ratios(np.array([np.nan]), np.array([np.nan]), ONE, F32)[0] == 0


def test_only_what_is_accumulated_in_the_dtype_may_grow():
    assert allowance(BF16, 8.0, is_product=False) == Allowance(1.0, 8.0)
    assert allowance(F32, 8.0, is_product=False) == allowance(F32, 8.0, is_product=True) == Allowance(8.0, 8.0)
    actual = ONE + 0.5
    assert noise_ratios(actual, ONE, ZERO, F32, Allowance(8.0, 8.0))[0] * 8 == noise_ratios(actual, ONE, ZERO, F32)[0]


def test_a_product_in_half_precision_rounds_once():
    allowed = allowance(BF16, 8.0, is_product=True)
    assert allowed == Allowance(0.25, 8.0)
    assert noise_ratios(ONE * (1 + BF16.eps / 2), ONE, ZERO, BF16, allowed)[0] == 1.0
    # What the inputs do to it is allowed in full.
    assert noise_ratios(ONE * (1 + BF16.eps / 2), ONE, ONE * BF16.eps, BF16, allowed)[0] < 0.04


def test_growth_follows_the_length_of_sums():
    assert growth(summed([128 * 256, 256 * 512], 128 * 512)) == 2.0
    assert growth(summed([100 * 64], 100)) == 1.0
    assert growth(summed([1 << 20], 1)) == 8.0
    assert summed([], 4) == summed([4], 0) == 1.0


def test_tolerances_decide_element_by_element():
    actual, expected = np.array([1.0, 1.1, np.nan, np.inf]), np.array([1.0, 1.0, np.nan, 1.0])
    assert outside(actual, expected, F32, (0.0, 0.05)).tolist() == [False, True, False, True]
    assert outside(np.array([1, 2]), np.array([1, 3]), None, (5.0, 0.0)).tolist() == [False, True]


def test_counts_of_both_sides_are_put_in_words():
    assert where_not_finite((2, 0, 1, 1)) == "2 NaN, expected 0"
    assert where_not_finite((1, 1, 0, 0)) is None


def test_growth_begins_at_64_and_ends_at_8_and_a_running_sum_grows_on():
    assert [growth(length) for length in (1, 64, 256, 4096, 10**6)] == [1.0, 1.0, 2.0, 8.0, 8.0]
    assert [running_growth(length) for length in (256, 4096, 2**18, 2**20)] == [2.0, 8.0, 64.0, 256.0]


def test_how_many_numbers_an_element_is_made_of():
    m, k, n = 3, 16, 5
    assert summed([m * k, k * n], m * n) == pytest.approx(k)
    assert summed([k * n, 2, m * k], m * n) == pytest.approx(k)  # a bias is the smallest
    assert summed([100], 4) == 25.0
    assert summed([100, 1], 1) == 100.0
    assert summed([], 4) == summed([100], 0) == 1.0
