"""Finds planted sets exactly, in few tests; where a test is not monotone, what it finds still has nothing to spare."""

import random
from contextlib import nullcontext
from itertools import combinations, pairwise
from math import log2

import pytest

from nbkit.capture.operators.bisect.kept_state import KeptState
from nbkit.capture.operators.bisect.search import delta_debugged, smallest_set
from nbkit.capture.operators.bisect.trials import Trials


class Counting:
    """Passes sets that hold all culprits; counts the different sets that it was asked about."""

    def __init__(self, culprits):
        self.culprits, self.asked = frozenset(culprits), {frozenset()}

    def __call__(self, chosen):
        self.asked.add(chosen)
        return self.culprits <= chosen


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [7, 300, 1024])
def test_a_planted_set_is_found_in_few_tests(count, size):
    lot = random.Random(size + count)
    for _ in range(30):
        culprits = lot.sample(range(size), count)
        ends = [0, *sorted(lot.sample(range(1, size), 5)), size]
        groups = [range(start, end) for start, end in pairwise(ends)]
        passes = Counting(culprits)
        assert set(smallest_set(groups, passes)) == set(culprits)
        # Three more trials are run beside the search: nothing, all, and the result once more.
        assert len(passes.asked) + 2 <= 2 * count * log2(size) + 8


def test_culprits_at_the_front_take_few_tests_however_many_there_are():
    passes = Counting([0, 1])
    assert smallest_set([[0], [1], range(2, 4000)], passes) == [1, 0]
    assert len(passes.asked) <= 8


def test_one_of_two_repairs_is_found():
    found = smallest_set([range(100)], lambda chosen: bool({20, 70} & chosen))
    assert found == [20]


def test_a_test_that_is_not_monotone_still_gives_a_set_that_passes_with_nothing_to_spare():
    def passes(chosen):
        return {1, 6} <= chosen and (3 not in chosen or len(chosen) > 3) and len(chosen) != 4

    found = smallest_set([range(8)], passes)
    assert passes(frozenset(found))
    assert not any(passes(frozenset(found) - {unit}) for unit in found)


@pytest.mark.parametrize("culprits", [1, 2, 3])
def test_delta_debugging_finds_the_set_by_itself(culprits):
    for size in range(culprits, 11):
        for planted in combinations(range(size), culprits):
            assert delta_debugged(range(size), Counting(planted)) == list(planted)


def test_progress_says_how_many_trials_ran_and_how_large_the_last_was():
    trials = Trials(lambda: 3, lambda result: result == 3, KeptState([]), lambda chosen: nullcontext())
    assert trials.progress() == "opbisect: 0 trials"
    for chosen in (frozenset(), frozenset({("aten.mm.default", 0)})):
        assert trials.passes("search", chosen) and trials.passes("search", chosen)
    assert trials.progress() == "opbisect: 2 trials, the last one with 1 call"
    assert trials.done() is None


def test_progress_tells_the_trials_and_the_time_that_are_left_at_the_most():
    trials = Trials(lambda: 3, lambda result: True, KeptState([]), lambda chosen: nullcontext())
    trials.rows = [{"calls": 0, "time_us": 4e6}, {"calls": 9, "time_us": 1e6}]
    trials.seeks(1, 7)
    assert trials.progress() == "opbisect: 2 trials, at most 8 more if 1 call is at fault"
    assert trials.done() == pytest.approx(5 / 13)  # 5 s passed, 8 trials of 1 s are left
    trials.rows.append({"calls": 4, "time_us": 3e6})
    trials.seeks(2, 9)
    assert trials.progress() == "opbisect: 3 trials, at most 10 more if 2 calls are at fault"
    assert trials.done() == pytest.approx(8 / 28)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_search_takes_more_tests_than_it_was_said_to(count):
    lot = random.Random(count)
    for size in [*range(3, 40), 300, 1024]:
        passes, most = Counting(lot.sample(range(size), count)), []
        ends = sorted({0, size, *(lot.randrange(1, size) for _ in range(4))})
        smallest_set(
            [range(*pair) for pair in pairwise(ends)],
            passes,
            lambda number, left, asked=passes.asked, most=most: most.append(len(asked) + left),
        )
        assert len(most) == count and len(passes.asked) <= most[-1]
