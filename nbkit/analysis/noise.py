"""The noise of two timings that were each repeated: how large a change of a group of ops it can explain.

A machine that others use is slower as a whole for a while: what all groups of a repeat have in common is taken out
before (`repeat_scales`), as is what all groups of a run have in common (`common_factor`). What is left has spikes, two
levels where memory is now and then fetched anew, and hundreds of groups are looked at, so a change has to pass twice:

- It is larger than the quantile of Student's t for the chance ALARM that any of the groups passes, times the standard
  error of the medians. That is moderated by the usual error of groups of like time, as limma does it for genes
  (Smyth 2004), since the spread of ten values is itself uncertain, and raised if the groups on the whole lie further
  apart than it says: runs can differ by what their repeats share.
- The two sides are apart by the rank test of Mann and Whitney, for the chance RANK_ALARM: the bound is the near end
  of its confidence interval of the shift (Hodges and Lehmann 1963). This is what spikes and two levels cannot fool.

Groups below SMALL of the step's time in both runs are not in the family, and never beyond noise.
"""

from functools import lru_cache
from math import comb, exp, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
ALARM = 0.002
RANK_ALARM = 0.01  # ten repeats against ten of some hundred groups can say no more
SMALL = 0.0005
# Below this the clock's resolution and the cost of a call are what is measured.
SHORTEST_US = 0.5
# With fewer groups than this, what they have in common cannot be told from what one of them does.
FEWEST_GROUPS = 8
PRIOR_DEGREES = 8
WINDOW = 51
TO_DEVIATION = 1.4826  # of the median absolute deviation, for normal values
MEDIAN_ERROR = 1.2533  # standard error of a median over that of a mean
# Croux and Rousseeuw 1992: few values are further apart than their median absolute deviation says.
FEW_VALUES = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}


def repeat_scales(times: Floats) -> Floats:
    """How slow each repeat was as a whole, 1 being usual: (repeats,) of times (groups, repeats)."""
    median = np.median(times, axis=1, keepdims=True)
    if len(times) < FEWEST_GROUPS or times.shape[1] < 2:
        return np.ones(times.shape[1])
    ratio = times / np.maximum(median, SHORTEST_US)
    scales = np.array([_weighted_median(column, np.sqrt(median[:, 0])) for column in ratio.T])
    return np.where(scales > 0, scales, 1.0)


def common_factor(left: Floats, right: Floats) -> float:
    """How many times as long the right run takes all over: weighted median of the ratios of (groups,) times.

    1.0 where there are too few groups of both runs to tell.
    """
    is_both = (left > SHORTEST_US) & (right > SHORTEST_US)
    left, right = left[is_both], right[is_both]
    return _weighted_median(right / left, np.sqrt(left + right)) if len(left) >= FEWEST_GROUPS else 1.0


def noise_bounds(left: Floats, right: Floats) -> Floats:
    """Per group the largest change of median that noise can explain, of times (groups, repeats) of two runs, in us.

    Null everywhere if a run has fewer than 2 repeats. The change that it is compared with goes in either direction.
    """
    if min(left.shape[1], right.shape[1]) < 2 or not len(left):
        return np.full(len(left), np.nan)
    medians = np.median(left, axis=1), np.median(right, axis=1)
    change, level = medians[1] - medians[0], (medians[0] + medians[1]) / 2
    error = _standard_errors(left, right, level)
    smallest = SMALL * float(level.sum())
    is_large = np.maximum(*medians) >= smallest
    family = max(int(is_large.sum()), 1)
    far = np.abs(change[is_large]) / error[is_large]
    usual = TO_DEVIATION * float(np.median(far)) if len(far) >= FEWEST_GROUPS else 1.0
    # What groups of like time lend is worth no more than the repeats themselves.
    degrees = min(PRIOR_DEGREES + _degrees(left, right), left.shape[1] + right.shape[1] - 2)
    bound = student_quantile(ALARM / family, degrees) * max(usual, 1.0) * error
    bound = np.where(is_large, bound, np.maximum(bound, smallest))
    near = np.flatnonzero(np.abs(change) > bound)
    bound[near] = np.maximum(bound[near], _unsure_by_rank(left[near], right[near], change[near], RANK_ALARM / family))
    return bound


def _standard_errors(left: Floats, right: Floats, level: Floats) -> Floats:
    """Standard error of the difference of medians, moderated by that of groups of like time."""
    own = MEDIAN_ERROR * np.sqrt(sum(_deviations(times) ** 2 / times.shape[1] for times in (left, right)))
    usual = _running_median(own / np.maximum(level, SHORTEST_US), np.argsort(level, kind="stable")) * level
    degrees = _degrees(left, right)
    moderated = (PRIOR_DEGREES * usual**2 + degrees * own**2) / (PRIOR_DEGREES + degrees)
    return np.asarray(np.maximum(np.sqrt(moderated), 1e-9))


def _degrees(left: Floats, right: Floats) -> float:
    """Degrees of freedom of a group's own error: a median absolute deviation knows as much as 37 % of the values."""
    return float(0.37 * (left.shape[1] + right.shape[1] - 2))


def _deviations(times: Floats) -> Floats:
    """Robust standard deviation per group."""
    distance = np.abs(times - np.median(times, axis=1, keepdims=True))
    repeats = times.shape[1]
    return np.asarray(TO_DEVIATION * FEW_VALUES.get(repeats, repeats / (repeats - 0.8)) * np.median(distance, axis=1))


def _unsure_by_rank(left: Floats, right: Floats, change: Floats, chance: float) -> Floats:
    """Per group the distance from its change to the near end of the rank test's interval of the shift."""
    allowed = rank_threshold(left.shape[1], right.shape[1], chance)
    # Samples too small for the test have to be apart by twice the range of the wider one.
    margin = 2 * np.maximum(np.ptp(left, axis=1), np.ptp(right, axis=1)) if allowed < 0 else 0.0
    apart = (right[:, :, None] - left[:, None, :]) * np.sign(change)[:, None, None]
    nearest = np.sort(apart.reshape(len(left), left.shape[1] * right.shape[1]), axis=1)[:, max(allowed, 0)]
    return np.asarray(np.abs(change) - nearest + margin)


@lru_cache(maxsize=64)
def rank_threshold(left: int, right: int, chance: float) -> int:
    """Largest number of pairs in the wrong order, of samples of these sizes, of at most this chance (two-sided).

    -1 where the samples are too small for any. Counted exactly, from the Gaussian binomial coefficient, whose n-th
    coefficient is the number of orders with n wrong pairs.
    """
    ways = [1]
    for number in range(1, left + 1):
        ways = _divided(_multiplied(ways, right + number), number)
    total, summed, allowed = comb(left + right, left), 0, -1
    for count in ways:
        summed += count
        if 2 * summed > chance * total:
            break
        allowed += 1
    return allowed


def _multiplied(ways: list[int], power: int) -> list[int]:
    """Coefficients times (1 - q**power)."""
    long = [*ways, *[0] * power]
    return [value - (long[place - power] if place >= power else 0) for place, value in enumerate(long)]


def _divided(ways: list[int], power: int) -> list[int]:
    """Coefficients over (1 - q**power), which divides them."""
    whole = list(ways)
    for place in range(power, len(whole)):
        whole[place] += whole[place - power]
    return whole[: len(ways) - power]


def student_quantile(chance: float, degrees: float) -> float:
    """What |t| exceeds with this chance; Wallace's approximation (1959), within 2 % from 4 degrees on."""
    normal = -NormalDist().inv_cdf(chance / 2)
    return sqrt(degrees * (exp((normal * (8 * degrees + 3) / (8 * degrees + 1)) ** 2 / degrees) - 1))


def _running_median(values: Floats, order: npt.NDArray[np.intp]) -> Floats:
    """Median of each value and its neighbours in `order`."""
    width = max(min(WINDOW, len(values) // 4 * 2 + 1), 1)
    padded = np.pad(values[order], width // 2, mode="edge")
    found = np.empty_like(values)
    found[order] = np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)
    return found


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(summed, summed[-1] / 2)])
