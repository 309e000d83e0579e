"""Says how large a change of a group of ops the noise of two repeated timings can explain.

A group's time is the lower quartile of its repeats (`typical`), since what else the machine does only ever adds time:
a median moves by a whole time slice of 4 ms once half of the repeats were interrupted in that group. Times are compared
by their ratio, as a busy machine makes long and short groups longer by like factors; so noise is a factor too, and a
group cannot hide below a bound that is larger than itself. Before, what all groups of a repeat have in common is taken
out (`repeat_scales`), as is what the groups of a run have in common (`common_factor`). What is left has spikes, two
levels where memory is now and then fetched anew, and hundreds of groups are looked at, so a ratio has to pass twice:

- Its log is larger than the quantile of Student's t, for the chance ALARM that any of the groups passes, times its
  standard error, as the lower repeats have it. That is moderated by the usual error of groups of like time, as limma
  does it for genes (Smyth 2004), since the spread of so few values is itself uncertain. It is raised if the groups that
  should not differ, whose ops both runs call equally often, lie on the whole further apart than it says: runs can
  differ by what their repeats share.
- The two sides are apart by the rank test of Mann and Whitney, for the chance RANK_ALARM: the bound is the near end
  of its confidence interval of the shift (Hodges and Lehmann 1963). This is what spikes and two levels cannot fool.

Groups below SMALL of the step's time in both runs are not in the family, and never beyond noise. No statistics of the
repeats see that the machine was busy in one run only: record both in turn, on the same machine.
"""

from functools import lru_cache
from math import comb, exp, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
ALARM = 0.005  # of equal pairs of runs, one in 200 has a row called slower or faster
RANK_ALARM = 0.01  # ten repeats against ten of some hundred groups can say no more
SMALL = 0.0005
# Below this the clock's resolution and the cost of a call are what is measured.
SHORTEST_US = 0.5
# With fewer groups than this, what they have in common cannot be told from what one of them does.
FEWEST_GROUPS = 8
PRIOR_DEGREES = 8
WINDOW = 51
TO_DEVIATION = 1.4826  # of the median distance from 0, for normal values
QUARTILE_ERROR = 1.36  # standard error of a quartile over that of a mean


def typical(times: Floats) -> Floats:
    """Returns lower quartile of the repeats, one of them, per group: (groups,) of times (groups, repeats)."""
    return np.asarray(np.quantile(times, 0.25, axis=1, method="lower"))


def repeat_scales(times: Floats) -> Floats:
    """Returns how slow each repeat was as a whole, 1 being typical: (repeats,) of times (groups, repeats)."""
    usual = typical(times)
    if len(times) < FEWEST_GROUPS or times.shape[1] < 2:
        return np.ones(times.shape[1])
    ratio = times / np.maximum(usual, SHORTEST_US)[:, None]
    scales = np.array([_weighted_median(column, np.sqrt(usual)) for column in ratio.T])
    return np.where(scales > 0, scales, 1.0)


def common_factor(left: Floats, right: Floats) -> float:
    """Returns how many times as long the right run takes all over: weighted median of the ratios of (groups,) times.

    1.0 where there are too few groups of both runs to tell.
    """
    is_both = (left > SHORTEST_US) & (right > SHORTEST_US)
    left, right = left[is_both], right[is_both]
    return _weighted_median(right / left, np.sqrt(left + right)) if len(left) >= FEWEST_GROUPS else 1.0


def noise_bounds(left: Floats, right: Floats, is_same: Bools, whole_us: float | None = None) -> Floats:
    """Returns per group the largest change that noise can explain, of times (groups, repeats) of two runs, in us.

    It is that in the direction of the group's change: a group never gets faster by more than it takes. `is_same` tells
    the groups (groups,) whose ops both runs call equally often; `whole_us` is the step's time where the groups overlap,
    which otherwise is their sum. Null everywhere if a run has fewer than 2 repeats.
    """
    if min(left.shape[1], right.shape[1]) < 2 or not len(left):
        return np.full(len(left), np.nan)
    level = np.maximum(typical(left), typical(right))
    smallest = SMALL * (float(level.sum()) if whole_us is None else whole_us)
    is_large = level >= smallest
    logs = np.log(np.maximum(left, SHORTEST_US)), np.log(np.maximum(right, SHORTEST_US))
    before, after = (typical(times) for times in logs)
    bound = _log_bounds(*logs, np.argsort(level, kind="stable"), is_large, is_same)
    with np.errstate(over="ignore"):  # two repeats can explain anything, even an infinite change
        bound_us: Floats = np.abs(np.exp(before + np.where(after > before, bound, -bound)) - np.exp(before))
    return np.where(is_large, bound_us, np.maximum(bound_us, smallest))


def _log_bounds(left: Floats, right: Floats, order: Ints, is_large: Bools, is_same: Bools) -> Floats:
    """Returns per group the largest change that noise can explain, of logs of times; `order` is that of time."""
    change = typical(right) - typical(left)
    error = _standard_errors(left, right, order)
    family = max(int(is_large.sum()), 1)
    far = np.abs(change / error)[is_large & is_same]
    usual = TO_DEVIATION * float(np.median(far)) if len(far) >= FEWEST_GROUPS else 1.0
    # What groups of like time lend is worth no more than the repeats themselves.
    degrees = min(PRIOR_DEGREES + _degrees(left, right), left.shape[1] + right.shape[1] - 2)
    bound = student_quantile(ALARM / family, degrees) * max(usual, 1.0) * error
    near = np.flatnonzero(np.abs(change) > bound)
    bound[near] = np.maximum(bound[near], _unsure_by_rank(left[near], right[near], change[near], RANK_ALARM / family))
    return bound


def _standard_errors(left: Floats, right: Floats, order: Ints) -> Floats:
    """Returns standard error of the difference of quartiles, moderated by that of groups of like time."""
    own = QUARTILE_ERROR * np.sqrt(sum(_deviations(times) ** 2 / times.shape[1] for times in (left, right)))
    usual = _running_median(own, order)
    degrees = _degrees(left, right)
    moderated = (PRIOR_DEGREES * usual**2 + degrees * own**2) / (PRIOR_DEGREES + degrees)
    return np.asarray(np.maximum(np.sqrt(moderated), 1e-9))


def _degrees(left: Floats, right: Floats) -> float:
    """Returns degrees of freedom of a group's own error: lower repeats know as much as 22 % of them (by simulation)."""
    return float(0.22 * (left.shape[1] + right.shape[1] - 2))


def _deviations(times: Floats) -> Floats:
    """Returns the standard deviation per group of normal values from its lower repeats, which nothing interrupted.

    From the distance of two order statistics, whose expectations are Blom's (1958).
    """
    repeats = times.shape[1]
    low, high = int(0.1 * (repeats - 1)), max(int(0.4 * (repeats - 1)), min(2, repeats - 1))
    expected = [NormalDist().inv_cdf((place + 0.625) / (repeats + 0.25)) for place in (low, high)]
    ordered = np.sort(times, axis=1)
    return np.asarray((ordered[:, high] - ordered[:, low]) / (expected[1] - expected[0]))


def _unsure_by_rank(left: Floats, right: Floats, change: Floats, chance: float) -> Floats:
    """Returns per group the distance from its change to the near end of the rank test's interval of the shift."""
    allowed = rank_threshold(left.shape[1], right.shape[1], chance)
    # Samples too small for the test have to be apart by twice the range of the wider one.
    margin = 2 * np.maximum(np.ptp(left, axis=1), np.ptp(right, axis=1)) if allowed < 0 else 0.0
    apart = (right[:, :, None] - left[:, None, :]) * np.sign(change)[:, None, None]
    nearest = np.sort(apart.reshape(len(left), left.shape[1] * right.shape[1]), axis=1)[:, max(allowed, 0)]
    return np.asarray(np.abs(change) - nearest + margin)


@lru_cache(maxsize=64)
def rank_threshold(left: int, right: int, chance: float) -> int:
    """Returns the largest number of pairs in the wrong order, for these sample sizes, of at most this probability.

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
    """Returns coefficients times (1 - q**power)."""
    long = [*ways, *[0] * power]
    return [value - (long[place - power] if place >= power else 0) for place, value in enumerate(long)]


def _divided(ways: list[int], power: int) -> list[int]:
    """Returns coefficients over (1 - q**power), which divides them."""
    whole = list(ways)
    for place in range(power, len(whole)):
        whole[place] += whole[place - power]
    return whole[: len(ways) - power]


def student_quantile(chance: float, degrees: float) -> float:
    """Returns what |t| exceeds with this chance; Wallace's approximation (1959), within 2 % from 4 degrees on."""
    normal = -NormalDist().inv_cdf(chance / 2)
    return sqrt(degrees * (exp((normal * (8 * degrees + 3) / (8 * degrees + 1)) ** 2 / degrees) - 1))


def _running_median(values: Floats, order: Ints) -> Floats:
    """Returns median of each value and its neighbors in `order`."""
    width = min(WINDOW, (len(values) - 1) // 2 * 2 + 1)
    padded = np.pad(values[order], width // 2, mode="reflect")
    result = np.empty_like(values)
    result[order] = np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)
    return result


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(summed, summed[-1] / 2)])
