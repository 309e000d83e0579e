"""Finds the generators, iterators and queues that a step reaches, wherever it holds them."""

import queue
import random

import numpy as np
import torch

from nbkit.capture.watch.reached import mentioned, reached

SHARED = random.Random(1)


class Holder:
    def __init__(self, **held):
        vars(self).update(held)

    def draw(self):
        return SHARED.random()


def test_generators_are_found_in_attributes_containers_closures_and_what_methods_mention():
    held = [torch.Generator(), np.random.default_rng(1), np.random.RandomState(1), random.Random(2)]

    def inner():
        return held[0]

    def empty():
        return later

    names = {"inner": inner, "nested": {"a": [(Holder(rng=held[1]),)]}, "model": Holder(rng=held[2]), "other": held[3]}
    found = reached({**names, "empty": empty}).generators
    later = None
    assert {id(one) for one in found} == {*map(id, held), id(SHARED)}


def test_what_can_be_read_once_has_its_name(tmp_path):
    path = tmp_path / "data"
    path.write_text("1")
    with path.open() as file, (tmp_path / "log").open("w") as log:
        names = {"batches": iter([1]), "file": file, "log": log, "data": Holder(items=queue.Queue(), rows=[iter([2])])}
        found = reached(names)
    assert sorted(found.one_way) == ["the file `file`", "the iterator `batches`"]
    assert found.queues == ["the queue `items`"]


def test_only_what_code_mentions_is_reached():
    def step():
        return [SHARED for _ in range(2)]

    assert [*mentioned(step.__code__, globals())] == ["SHARED"]


def test_a_queue_that_code_only_writes_to_is_none_of_those_that_are_read():
    items = queue.Queue()

    def writes():
        items.put(1)

    def reads():
        items.put(next(iter(items.get, None)))

    assert reached({"": writes}).queues == [] and reached({"": reads}).queues == ["the queue `items`"]
    assert reached({"items": items}).queues == ["the queue `items`"]  # unknown


def test_a_search_that_is_not_brought_to_its_end_says_so(monkeypatch):
    held = [Holder(rng=random.Random(1)) for _ in range(10)]
    assert reached({"held": held}).is_whole
    monkeypatch.setattr("nbkit.capture.watch.reached.MOST_OBJECTS", 5)
    assert not reached({"held": held}).is_whole
