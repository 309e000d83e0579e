"""reachable() walks from thing to thing, each once, the nearest first."""

from nbkit.step.reachable import reachable

READERS = {0: [1, 2, 2], 1: [3], 2: [3, 4], 3: [0], 4: []}


def test_each_thing_comes_once_and_the_nearest_first_also_in_a_circle():
    assert list(reachable([0], READERS.__getitem__)) == [0, 1, 2, 3, 4]
    assert list(reachable([2, 2, 1], READERS.__getitem__)) == [2, 1, 3, 4, 0]


def test_one_goes_no_further_where_nothing_is_next():
    assert list(reachable([0], lambda thing: READERS[thing] if thing != 2 else ())) == [0, 1, 2, 3]
    assert list(reachable([], READERS.__getitem__)) == []


def test_what_is_next_is_asked_of_no_more_than_is_wanted():
    asked = []

    def onward(thing):
        asked.append(thing)
        return READERS[thing]

    assert next(thing for thing in reachable([0], onward) if thing > 1) == 2
    assert asked == [0, 1]
