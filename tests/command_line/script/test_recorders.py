import sys

import pytest

import nbkit
from nbkit.command_line.script.recorders import RepeatedStep


@pytest.fixture
def kept():
    return []


@pytest.fixture
def step(kept):
    return RepeatedStep(nbkit.optime(warmup=0, repeats=2), lambda trace, number: kept.append((number, trace)))


def test_a_repeat_that_fails_ends_the_trace_with_its_error(step, kept):
    step.begin(3, sys._getframe())
    assert step.end(ValueError("odd"), is_last=False)
    ((number, trace),) = kept
    assert (number, trace.complete) == (3, False)
    assert trace.meta["error"]["message"] == "odd"


def test_the_trace_is_kept_once_after_the_last_repeat(step, kept):
    for number in (3, 4):
        step.begin(number, sys._getframe())
        assert kept == []
        assert not step.end(None, is_last=number == 4)
    step.finish()
    assert [number for number, _ in kept] == [3]
    assert kept[0][1].meta["repeats"] == 2


def test_what_ends_early_is_kept_at_the_end(step, kept):
    step.begin(3, sys._getframe())
    step.end(None, is_last=False)
    step.finish()
    assert [number for number, _ in kept] == [3]
