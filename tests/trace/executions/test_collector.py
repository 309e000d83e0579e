"""Collector: a result with the very elements of what it was made from shares what is kept of it."""

import numpy as np

from nbkit.trace.executions.execution import Collector, Result
from nbkit.trace.executions.features import features_in_order, features_of
from nbkit.trace.executions.values import Values

VALUE = np.arange(24, dtype=np.float32).reshape(4, 6)


def add(collector, value, *sources):
    return collector.add(Result(0, "op", "x", str(value.dtype), value.shape, sources=sources), value)


def test_a_view_shares_what_is_kept_of_its_source():
    collector = Collector()
    first = add(collector, VALUE.copy())
    second = add(collector, VALUE.reshape(2, 12).copy(), first)
    assert np.shares_memory(collector.values.get(first), collector.values.get(second))
    assert collector.values.get(second).shape == (2, 12)
    assert collector.results[second].features == collector.results[first].features == features_in_order(VALUE)


def test_symmetric_projections_are_of_what_is_not_kept():
    collector = Collector(Values(VALUE.nbytes))
    kept, left_out = add(collector, VALUE), add(collector, VALUE + 1)
    assert collector.results[kept].features.symmetric == ()
    assert collector.results[left_out].features == features_of(VALUE + 1)


def test_what_was_written_to_or_turned_shares_nothing():
    collector, memory = Collector(), VALUE.copy()
    first = add(collector, memory)
    memory[0, 0] = 7
    for value in (memory, VALUE.T, VALUE.view(np.int32)):
        other = add(collector, value, first)
        assert not np.shares_memory(collector.values.get(first), collector.values.get(other))
        assert np.array_equal(collector.values.get(other), value)
    assert np.array_equal(collector.values.get(first), VALUE)
