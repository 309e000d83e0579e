"""Which steps are kept to be run again, and what is searched for that they may change."""

from dataclasses import dataclass, field
from time import perf_counter

import pytest
import torch

from nbkit.capture.watch.keeper import FEWEST_CALLS, MOST_CALLS, TOO_LARGE, Keeper


@dataclass
class Step:
    number: int
    names: dict = field(default_factory=dict)
    values: dict = field(default_factory=dict)
    module: dict = field(default_factory=dict)

    def objects(self):
        return iter(())

    def run(self):
        pass


def kept(count, keeper=None, **names):
    """A keeper that has met so many steps, and the numbers of those that began a segment."""
    keeper = keeper or Keeper(1 << 20)
    began = [number for number in range(count) if keeper.begin(Step(number, names)) is not None]
    return keeper, began


def unhurried():
    """Of a script that has run so long that copies are always due."""
    keeper = Keeper(1 << 20)
    keeper.began = perf_counter() - 1e6
    return keeper


def test_where_time_allows_a_segment_begins_after_a_few_steps():
    keeper, began = kept(3 * FEWEST_CALLS + 1, unhurried())
    assert began == [0, FEWEST_CALLS, 2 * FEWEST_CALLS, 3 * FEWEST_CALLS]
    assert [segment.calls[0].number for segment in keeper.recent] == began[-2:]
    assert keeper.first is not None and keeper.first.calls[0].number == 0


def test_where_copies_take_long_they_are_rare():
    keeper = Keeper(1 << 20)
    keeper.spent = 1e6
    assert kept(2 * MOST_CALLS + 1, keeper)[1] == [0, MOST_CALLS, 2 * MOST_CALLS]


def test_the_first_the_last_two_and_pinned_steps_are_found_again():
    keeper, _ = kept(6 * FEWEST_CALLS, unhurried())
    assert [keeper.segment_of(number) is not None for number in (0, 5, 8, 12, 17)] == [True, False, False, True, True]
    keeper.pin(13)
    keeper, _ = kept(9 * FEWEST_CALLS, keeper)
    assert keeper.segment_of(13) is keeper.pinned[13]


def test_what_the_first_step_makes_is_found_by_a_second_search():
    keeper, _ = kept(1, unhurried())
    made = torch.nn.Linear(2, 2)
    assert not any(held is made for held in keeper.holders)
    kept(FEWEST_CALLS + 1, keeper)
    assert any(held is made for held in keeper.holders)
    later = torch.nn.Linear(2, 2)
    kept(FEWEST_CALLS + 1, keeper)
    assert not any(held is later for held in keeper.holders)


def test_a_second_search_waits_until_there_is_time():
    keeper, _ = kept(1)
    made = torch.nn.Linear(2, 2)
    keeper.spent = 1e6
    kept(MOST_CALLS + 1, keeper)
    assert not any(held is made for held in keeper.holders)


def test_state_that_is_too_large_is_said_once_and_nothing_is_kept():
    keeper, began = kept(5, Keeper(8), weight=torch.nn.Parameter(torch.ones(8)))
    assert (keeper.problem, began, keeper.recent) == (TOO_LARGE, [], [])


@pytest.mark.parametrize(("elements", "count"), [(8, FEWEST_CALLS), (1 << 17, 1)])
def test_steps_whose_data_takes_too_much_are_not_kept(elements, count):
    keeper = Keeper(1 << 20)
    for number in range(FEWEST_CALLS):
        keeper.begin(Step(number, {"batch": torch.ones(elements)}))
    assert keeper.first is not None and len(keeper.first.calls) == count
