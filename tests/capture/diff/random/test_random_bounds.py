"""Statistics of random numbers against their bounds, by literal figures."""

from math import log

import pytest
import torch

from nbkit.capture.diff.random_statistics import (
    bins_off,
    chi_square_sigmas,
    count_off,
    log_equal,
    off,
    rows_alike,
    scatter_off,
    shape_off,
)


def test_a_statistic_may_be_six_standard_deviations_off() -> None:
    assert off("mean", 6.0, 0.0, 1.0) is None
    assert off("mean", -6.0, 0.0, 1.0) is None
    assert off("mean", 1e9 + 1, 1e9, 0.0) is None  # rounding
    assert off("mean", 6.5, 0.0, 0.5) == "random: mean 6.5, expected 0: 13 standard deviations off"
    assert off("mean", 1.0, 0.5, 0.0) == "random: mean 1, expected 0.5: no scatter is possible"


def test_a_count_of_ones_is_judged_by_bernsteins_inequality() -> None:
    # 100 wanted with a variance of 100: d * d / 2 / (100 + d / 3) is 20 at d = 70.3.
    assert count_off("ones", 170.0, 100.0, 100.0) is None
    assert count_off("ones", 30.0, 100.0, 100.0) is None
    assert count_off("ones", 171.0, 100.0, 100.0) == "random: ones 171, expected 100: 7 standard deviations off"
    # Of a rare one 12 are many by a normal distribution, and may be by chance.
    assert off("ones", 12.0, 1.0, 1.0) is not None
    assert count_off("ones", 12.0, 1.0, 1.0) is None
    assert count_off("ones", 5.0, 5.0, 0.0) is None
    assert count_off("ones", 4.0, 5.0, 0.0) == "random: ones 4, expected 5: no scatter is possible"


def test_a_sum_of_squares_is_worth_so_many_standard_deviations() -> None:
    assert chi_square_sigmas(100.0, 100.0) == pytest.approx(0.0471, abs=1e-4)
    assert chi_square_sigmas(124.34, 100.0) == pytest.approx(1.645, abs=2e-3)  # exceeded by 5 %
    assert chi_square_sigmas(77.93, 100.0) == pytest.approx(-1.645, abs=4e-3)


def test_the_scatter_of_normal_numbers_is_known_however_few() -> None:
    numbers = torch.tensor([1.0, -1.0] * 50, dtype=torch.float64)
    assert scatter_off(numbers, 0.0, 1.0, 0.0) is None
    assert scatter_off(numbers * 2, 0.0, 1.0, 0.0) == "random: standard deviation 2, expected 1"
    assert scatter_off(numbers * 2, 0.0, 1.0, 0.2) is None  # that much may be rounding
    assert scatter_off(numbers / 2, 0.0, 1.0, 0.0) == "random: standard deviation 0.5, expected 1"
    assert scatter_off(numbers + 3, 3.0, 1.0, 0.0) is None
    assert scatter_off(numbers, 0.0, 0.0, 0.0) == "random: standard deviation 1, expected 0"
    assert scatter_off(numbers * 0, 0.0, 0.0, 0.0) is None


def uniform(numbers: torch.Tensor, eps: float = 0.0) -> str | None:
    return shape_off(numbers, lambda x: x.clamp(0, 1), lambda chance: chance, (eps, 0.0))


def test_numbers_are_spread_over_bins_of_equal_chance() -> None:
    even = (torch.arange(512, dtype=torch.float64) + 0.5) / 512
    assert uniform(even) is None
    assert uniform(even[:63] * 0) is None  # three bins tell nothing
    told = "random: not spread as they should be: bin 1 of 4 of equal chance holds 64 of 64 numbers, expected 16"
    assert uniform(even[:64] * 0) == told
    assert uniform(even / 2) == (
        "random: not spread as they should be: bin 1 of 32 of equal chance holds 32 of 512 numbers, expected 16"
    )
    assert uniform(even / 2, eps=1.0) is None  # all may have been rounded across


def test_what_may_have_crossed_an_edge_is_no_error() -> None:
    counts, wanted = torch.tensor([150.0, 10.0, 20.0, 20.0]), torch.full((4,), 50.0)
    assert bins_off(counts, wanted, torch.zeros(5)) == (
        "random: not spread as they should be: bin 1 of 4 of equal chance holds 150 of 200 numbers, expected 50"
    )
    assert bins_off(counts, wanted, torch.tensor([0.0, 100.0, 0.0, 0.0, 0.0])) is None
    assert bins_off(torch.tensor([60.0, 40.0, 50.0, 50.0]), wanted, torch.zeros(5)) is None


def test_rows_that_are_all_alike_are_told() -> None:
    row = torch.arange(32.0)
    assert rows_alike(row.expand(4, 32), None) == "random: each row of 32 numbers is like the first of 4"
    assert rows_alike(row[:, None].expand(32, 3), None) is None
    parts = torch.stack([row.reshape(4, 8)] * 3)
    assert rows_alike(parts, None) == "random: each part of 32 numbers is like the first of 3"
    assert rows_alike(torch.cat([row, row.flip(0)]).reshape(2, 32), None) is None
    assert rows_alike(row[None], None) is rows_alike(row, None) is rows_alike(torch.ones(0, 3), None) is None
    bits = (torch.arange(32) % 2).float()
    assert rows_alike(bits.expand(2, 32), 0.5) is not None  # 32 halves: a chance of exp(-22)
    assert rows_alike(bits[:28].expand(2, 28), 0.5) is None  # exp(-19.4)
    assert rows_alike(bits.expand(2, 32), 0.001) is None
    assert rows_alike(bits.expand(2, 32), torch.full((2, 32), 0.5)) is not None
    assert rows_alike(bits.expand(2, 32), torch.full((1, 1), 0.001)) is None


def test_the_chance_of_the_same_numbers_once_more() -> None:
    assert log_equal(torch.ones(10), 0.5) == pytest.approx(10 * log(0.5))
    assert log_equal(torch.ones(2), 0.25) == pytest.approx(2 * log(0.625))
    assert log_equal(torch.tensor([1.0, 1.0, 2.0, 3.0]), None) == pytest.approx(4 * log(0.375))
    chances = torch.tensor([0.5, 0.25, 0.9])
    assert log_equal(torch.ones(2), chances) == pytest.approx(log(0.5) + log(0.625))
