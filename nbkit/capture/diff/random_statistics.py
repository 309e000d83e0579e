"""Statistics of random numbers, each with a bound that right ones pass but for one time in 500 million or fewer.

Where a normal approximation is not good enough there are better ones: of a sum of squares, and of exponential numbers,
that of Wilson and Hilferty for the chi-square distribution; of a count of ones Bernstein's inequality.
"""

from collections.abc import Callable
from math import inf, log, sqrt

import torch
from torch import Tensor

# Standard deviations that a statistic may be off: one right op in 500 million is called wrong.
SIGMAS = 6.0
# The same as a natural logarithm.
LOG_CHANCE = -20.0
# The numbers that fall into each of a histogram's bins, and how many bins there are at most.
IN_BIN, MOST_BINS = 16, 32
# More than SIGMAS: with so few numbers in a bin a chi-square statistic has longer tails.
SIGMAS_OF_BINS = 8.0
Function = Callable[[Tensor], Tensor]


def off(what: str, actual: float, wanted: float, deviation: float) -> str | None:
    """Returns what is wrong with a statistic whose scatter is known and normal."""
    if abs(actual - wanted) <= SIGMAS * deviation + 1e-9 * abs(wanted):
        return None
    distance = (
        f"{abs(actual - wanted) / deviation:.0f} standard deviations off" if deviation else "no scatter is possible"
    )
    return f"random: {what} {actual:.6g}, expected {wanted:.6g}: {distance}"


def count_off(what: str, actual: float, wanted: float, variance: float) -> str | None:
    """Returns what is wrong with a count of ones, by Bernstein's inequality: rare ones come in clusters."""
    distance = abs(actual - wanted)
    chance = distance**2 / 2 / (variance + distance / 3) if distance else 0.0
    return off(what, actual, wanted, sqrt(variance)) if chance > -LOG_CHANCE or not variance else None


def chi_square_sigmas(statistic: float, freedom: float) -> float:
    """Returns how many standard deviations of a normal number a chi-square statistic is worth (Wilson and Hilferty)."""
    spread = 2 / (9 * freedom)
    return float(((statistic / freedom) ** (1 / 3) - (1 - spread)) / sqrt(spread))


def scatter_off(out: Tensor, mean: float, std: float, rounding: float) -> str | None:
    """Returns what is wrong with the standard deviation of normal numbers of a known mean, however few."""
    actual = float((out - mean).square().mean().sqrt())
    bounds = [max(actual + change, 0.0) for change in (-SIGMAS * rounding, SIGMAS * rounding)]
    if not std:
        return None if bounds[0] == 0 else f"random: standard deviation {actual:.6g}, expected 0"
    low, high = (chi_square_sigmas(out.numel() * (bound / std) ** 2, out.numel()) for bound in bounds)
    if low <= SIGMAS and high >= -SIGMAS:
        return None
    return f"random: standard deviation {actual:.6g}, expected {std:.6g}"


def shape_off(out: Tensor, cdf: Function, quantile: Function, rounding: tuple[float, float]) -> str | None:
    """Returns what is wrong with how numbers are spread, by a histogram with as many expected in every bin.

    `rounding` is the eps of their dtype and its smallest number: they may have been rounded across the edge of a bin.
    """
    bins = min(MOST_BINS, out.numel() // IN_BIN)
    if bins < 4:
        return None
    counts = (cdf(out.reshape(-1)) * bins).long().clamp(0, bins - 1).bincount(minlength=bins).double()
    edges = quantile(torch.arange(1, bins, dtype=torch.float64) / bins)
    width = edges.abs() * rounding[0] + rounding[1]
    moved = out.numel() * (cdf(edges + width) - cdf(edges - width))
    return bins_off(counts, torch.full_like(counts, out.numel() / bins), torch.nn.functional.pad(moved, (1, 1)))


def bins_off(counts: Tensor, wanted: Tensor, moved: Tensor) -> str | None:
    """Returns what is wrong with the counts of a histogram; `moved` may have crossed each edge."""
    distance = ((counts - wanted).abs() - moved[1:] - moved[:-1]).clamp(min=0)
    if chi_square_sigmas(float((distance.square() / wanted).sum()), len(counts) - 1) <= SIGMAS_OF_BINS:
        return None
    worst = int((distance / wanted.sqrt()).argmax())
    return (
        f"random: not spread as they should be: bin {worst + 1} of {len(counts)} of equal chance holds "
        f"{int(counts[worst])} of {int(counts.sum())} numbers, expected {float(wanted[worst]):.0f}"
    )


def rows_alike(out: Tensor, chance: float | Tensor | None) -> str | None:
    """Returns what is wrong where all rows are alike, along the last axis or the first.

    `chance` is that of a one, of each element or of all; None for numbers that are no bits.
    """
    if out.dim() < 2 or not out.numel():
        return None
    for name, rows in (("row", out.reshape(-1, out.shape[-1])), ("part", out.reshape(len(out), -1))):
        if len(rows) > 1 and torch.equal(rows, rows[:1].expand_as(rows)):
            of_rows = chance.expand(out.shape).reshape(rows.shape) if isinstance(chance, Tensor) else chance
            if _log_alike(rows, of_rows) < LOG_CHANCE:
                return f"random: each {name} of {rows.shape[1]} numbers is like the first of {len(rows)}"
    return None


def _log_alike(rows: Tensor, chance: float | Tensor | None) -> float:
    """Returns the logarithm of the chance that all rows are alike, at most."""
    if chance is None:
        return (len(rows) - 1) * log_equal(rows[0], None)
    if isinstance(chance, Tensor):
        ones = chance.double()
        return float((ones.prod(0) + (1 - ones).prod(0)).log().sum())
    same = chance ** len(rows) + (1 - chance) ** len(rows)
    return rows.shape[1] * log(same) if same else -inf


def log_equal(numbers: Tensor, chance: float | Tensor | None) -> float:
    """Returns the logarithm of the chance that numbers drawn once more are these; `chance` as above.

    Of numbers that are no bits it is taken from how often each of them occurs.
    """
    if isinstance(chance, Tensor):
        ones = chance.double().reshape(-1)[: len(numbers)]
        return float((ones**2 + (1 - ones) ** 2).log().sum())
    if chance is None:
        shares = numbers.unique(return_counts=True)[1].double() / len(numbers)
        return len(numbers) * log(float(shares.square().sum()))
    return len(numbers) * log(chance**2 + (1 - chance) ** 2)
