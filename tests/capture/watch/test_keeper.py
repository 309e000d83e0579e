"""Which steps are kept to be run again, and what is searched for that they may change."""

from dataclasses import dataclass, field
from time import perf_counter

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from nbkit.capture.watch import keeper, share
from nbkit.capture.watch.keeper import DISTRIBUTED, FEWEST_CALLS, MOST_CALLS, TOO_LARGE, Keeper


@pytest.fixture(autouse=True)
def modules(monkeypatch):
    """The modules that a search finds; those of other tests in this process are left out."""
    found = []
    monkeypatch.setattr(keeper, "holders", lambda: [*found])
    return found


@dataclass
class Step:
    number: int
    names: dict = field(default_factory=dict)
    values: dict = field(default_factory=dict)
    module: dict = field(default_factory=dict)

    def objects(self):
        return iter(())

    def mentioned(self):
        return self.names

    def run(self):
        pass


def kept(count, among=None, **names):
    """A keeper that has met so many steps, and the numbers of those that began a segment."""
    among = among or Keeper(1 << 20)
    began = [number for number in range(count) if among.begin(Step(number, names)) is not None]
    return among, began


def unhurried():
    """Of a script that has run so long that copies are always due."""
    among = Keeper(1 << 20)
    among.copying.began = perf_counter() - 1e6
    return among


def test_where_time_allows_a_segment_begins_after_a_few_steps():
    among, began = kept(3 * FEWEST_CALLS + 1, unhurried())
    assert began == [0, FEWEST_CALLS, 2 * FEWEST_CALLS, 3 * FEWEST_CALLS]
    assert [segment.calls[0].number for segment in among.recent] == began[-2:]
    assert among.first is not None and among.first.calls[0].number == 0


def test_where_copies_take_long_they_are_rare():
    among = Keeper(1 << 20)
    among.copying.spent = 1e6
    assert kept(2 * MOST_CALLS + 1, among)[1] == [0, MOST_CALLS, 2 * MOST_CALLS]


def test_copies_take_half_a_percent_of_the_time(monkeypatch):
    """The clock is made: it is read once per step, and ticks then; a copy lasts one tick."""
    monkeypatch.setattr(keeper, "TIME_SHARE", 0.02)
    monkeypatch.setattr(share, "perf_counter", iter(range(1000)).__next__)
    assert kept(196)[1] == [0, 47, 95, 143, 191]  # a fiftieth here, to be short


def test_the_first_the_last_two_and_pinned_steps_are_found_again():
    among, _ = kept(6 * FEWEST_CALLS, unhurried())
    assert [among.segment_of(number) is not None for number in (0, 5, 8, 12, 17)] == [True, False, False, True, True]
    among.pin(13)
    among, _ = kept(9 * FEWEST_CALLS, among)
    assert among.segment_of(13) is among.pinned[13]


def test_what_the_first_step_makes_is_found_by_a_second_search_and_no_further_one(modules):
    among, _ = kept(1, unhurried())
    made, later = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    modules.append(made)
    kept(FEWEST_CALLS + 1, among)
    assert among.holders == [made]
    modules.append(later)
    kept(FEWEST_CALLS + 1, among)
    assert among.holders == [made]


def test_a_second_search_waits_until_there_is_time(modules):
    among, _ = kept(1)
    modules.append(torch.nn.Linear(2, 2))
    among.copying.spent = 1e6
    kept(MOST_CALLS + 1, among)
    assert among.holders == []


def test_state_that_is_too_large_is_said_once_and_nothing_is_kept():
    among, began = kept(5, Keeper(8), weight=torch.nn.Parameter(torch.ones(8)))
    assert (among.problem, began, among.recent) == (TOO_LARGE, [], [])


def test_where_state_has_grown_too_large_the_latest_make_room_and_the_first_stays():
    among, _ = kept(FEWEST_CALLS + 1, unhurried())
    _, began = kept(FEWEST_CALLS, among, weight=torch.nn.Parameter(torch.ones(1 << 19)))
    assert (among.problem, began, among.recent) == (TOO_LARGE, [], [])
    assert among.segment_of(0) is among.first and among.segment_of(FEWEST_CALLS) is None


@pytest.mark.parametrize(("processes", "problem"), [(1, None), (2, DISTRIBUTED)])
def test_one_of_several_processes_keeps_nothing(processes, problem):
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=processes)
    try:
        assert kept(1)[0].problem == problem
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(("elements", "count"), [(8, FEWEST_CALLS), (1 << 17, 1)])
def test_steps_whose_data_takes_too_much_are_not_kept(elements, count):
    among = Keeper(1 << 20)
    for number in range(FEWEST_CALLS):
        among.begin(Step(number, {"batch": torch.ones(elements)}))
    assert among.first is not None and len(among.first.calls) == count
