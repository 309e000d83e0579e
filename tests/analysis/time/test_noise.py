"""The noise of repeats: what it explains, and what it does not."""

import numpy as np
import pytest

from nbkit.analysis.time.noise import (
    common_factor,
    noise_bounds,
    rank_threshold,
    repeat_scales,
    student_quantile,
    typical,
)


def runs(groups: int = 60, repeats: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Times of two equal runs: groups of 20 to 200 us with 4 % noise and now and then a spike."""
    draw = np.random.default_rng(seed)
    level = draw.uniform(20.0, 200.0, (groups, 1))
    noise = draw.normal(1.0, 0.04, (2, groups, repeats)) + draw.exponential(0.5, (2, groups, repeats)) * (
        draw.random((2, groups, repeats)) < 0.05
    )
    left, right = level * noise
    return left, right


def bounds(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return noise_bounds(left, right, np.ones(len(left), bool))


def beyond(left: np.ndarray, right: np.ndarray) -> list[int]:
    return np.flatnonzero(np.abs(typical(right) - typical(left)) > bounds(left, right)).tolist()


def test_the_typical_repeat_is_one_that_nothing_interrupted() -> None:
    assert typical(np.array([[5.0, 4009.0, 2.0, 4005.0, 8003.0, 4002.0, 1.0, 4009.0, 4004.0, 4007.0]])).tolist() == [
        5.0
    ]


def test_equal_runs_have_no_change_beyond_noise() -> None:
    assert [seed for seed in range(50) if beyond(*runs(seed=seed))] == []


def test_a_slower_group_is_beyond_noise_up_and_down() -> None:
    left, right = runs()
    right[7] *= 1.5
    assert beyond(left, right) == beyond(right, left) == [7]


def test_two_levels_are_no_change() -> None:
    left, right = runs()
    left[3] = [297, 54, 45, 286, 43, 43, 275, 43, 264, 47]
    right[3] = [42, 46, 444, 299, 291, 293, 46, 294, 289, 297]
    assert beyond(left, right) == []


def test_a_level_that_less_than_half_of_the_repeats_have_is_no_change() -> None:
    left, right = runs()
    left[3] = [43, 281, 42, 290, 268, 45, 284, 44, 276, 294]
    right[3] = [282, 291, 269, 285, 277, 295, 273, 288, 266, 279]
    assert beyond(left, right) == beyond(right, left) == []


def test_runs_fully_apart_by_a_large_ratio_are_beyond_noise_on_a_busy_machine() -> None:
    left, right = runs()
    left[3] = [30000, 24000, 29000, 52000, 33000, 18200, 41000, 27000, 64000, 22000]
    right[3] = [6400, 12300, 5200, 8800, 5100, 6100, 9700, 5300, 7200, 5900]
    assert beyond(left, right) == beyond(right, left) == [3]


def test_a_bound_down_is_less_than_the_time_itself() -> None:
    left, right = runs()
    left[3] = [30000, 300, 29000, 52000, 330, 18200, 41000, 27000, 64000, 220]
    bound, down = bounds(left, right), typical(right) < typical(left)
    assert (bound[down] < typical(left)[down]).all()


def test_half_of_the_repeats_interrupted_are_no_change() -> None:
    left, right = runs()
    left[3], right[3] = left[4] * 10, right[4] * 10
    right[3, 2:8] += 4000.0
    assert beyond(left, right) == beyond(right, left) == []


def test_real_changes_are_no_noise_of_the_others() -> None:
    left, right = runs()
    right[:40] *= np.linspace(0.2, 0.5, 40)[:, None]
    is_same = np.arange(60) >= 40
    change = np.abs(typical(right) - typical(left))
    assert (change > noise_bounds(left, right, is_same))[:40].sum() > 35
    assert not (change > noise_bounds(left, right, ~is_same)).any()


def test_what_is_shorter_than_the_smallest_share_is_never_beyond() -> None:
    left, right = runs()
    left[5], right[5] = 1.0, 3.0
    assert beyond(left, right) == []
    left[5], right[5] = 10.0, 30.0
    assert beyond(left, right) == [5]


@pytest.mark.parametrize("repeats", [3, 5])
def test_few_repeats_say_little(repeats: int) -> None:
    assert [seed for seed in range(30) if beyond(*runs(repeats=repeats, seed=seed))] == []
    left, right = runs(repeats=repeats)
    right[7] *= 3.0
    assert beyond(left, right) == [7]


def test_two_repeats_may_explain_anything() -> None:
    left, right = runs(repeats=2)
    left[3], right[3] = [10.0, 1e9], [1e5, 1e99]
    assert beyond(left, right) == []
    assert np.isposinf(bounds(left, right)[3])


def test_one_repeat_has_no_noise() -> None:
    left, right = runs()
    assert np.isnan(bounds(left[:, :1], right)).all()
    assert len(bounds(left[:0], right[:0])) == 0


def test_a_repeat_that_is_slow_as_a_whole_is_seen() -> None:
    left, _ = runs()
    left[:, 4] *= 1.7
    scales = repeat_scales(left)
    assert abs(scales[4] - 1.7) < 0.1
    assert np.abs(np.delete(scales, 4) - 1.0).max() < 0.05
    assert repeat_scales(left[:3]).tolist() == [1.0] * 10


def test_the_common_factor_is_that_of_most_groups() -> None:
    left = np.linspace(5.0, 50.0, 40)
    right = left * 1.05
    right[:10] *= 3.0
    assert common_factor(left, right) == pytest.approx(1.05)
    assert common_factor(left[:5], right[:5]) == 1.0


def test_ranks_are_counted_exactly() -> None:
    # 3 against 3: of the 20 orders 1 has no wrong pair, 1 has one, 2 have two (Mann and Whitney 1947, table I).
    assert [rank_threshold(3, 3, chance) for chance in (0.09, 0.10, 0.20, 0.40)] == [-1, 0, 1, 2]
    assert rank_threshold(10, 10, 0.05) == 23
    assert rank_threshold(10, 10, 1e-5) == -1


@pytest.mark.parametrize(
    ("degrees", "chance", "expected"), [(18, 0.05, 2.101), (18, 1e-4, 4.966), (8, 1e-3, 5.041), (4, 0.01, 4.604)]
)
def test_quantiles_are_those_of_tables(degrees: int, chance: float, expected: float) -> None:
    assert student_quantile(chance, degrees) == pytest.approx(expected, rel=0.02)
