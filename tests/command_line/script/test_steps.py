"""Counting steps: which are recorded, and what of errors, nesting and the end."""

import pytest

from nbkit.command_line.script.steps import Steps, StopAfter
from nbkit.errors import OptionError


class Log:
    """A recorder that writes down what it is told."""

    def __init__(self, *, fails: bool = False) -> None:
        self.events: list[object] = []
        self.fails = fails

    def begin(self, number, frame):
        if self.fails:
            raise OptionError("A profiler is running.")
        self.events.append(number)

    def end(self, error, *, is_last):
        self.events.append(type(error).__name__ if error else "last" if is_last else "end")
        return False

    def finish(self):
        self.events.append("finish")


def test_the_wanted_steps_are_recorded_and_no_others():
    steps = Steps(log := Log(), skip=1, count=2)
    for _ in range(5):
        with steps():
            pass
    steps.finish()
    with steps():
        pass
    assert log.events == [1, "end", 2, "last", "finish"]
    assert (steps.met, steps.missing) == (3, 0)


def test_a_step_in_a_step_is_part_of_it():
    steps = Steps(log := Log(), skip=1, count=5)
    for _ in range(2):
        with steps(), steps():
            pass
    assert (log.events, steps.met, steps.missing) == ([1, "end"], 2, 4)


def test_an_error_goes_on_and_is_told():
    steps = Steps(log := Log(), count=2)
    with pytest.raises(ValueError), steps():
        raise ValueError
    with pytest.raises(SystemExit), steps():
        raise SystemExit(0)
    assert log.events == [0, "ValueError", 1, "last"]


def test_the_script_can_be_ended_after_the_last():
    steps = Steps(Log(), count=1, stops=True)
    with pytest.raises(StopAfter) as raised, steps():
        pass
    assert raised.value.code == 0


def test_what_cannot_be_recorded_leaves_the_script_alone_and_is_tried_once():
    steps = Steps(log := Log(fails=True), count=9)
    with steps():
        log.fails = False
    for _ in range(3):
        with steps():
            pass
    assert (log.events, steps.problem, steps.is_inside) == ([], "A profiler is running.", False)
    assert (steps.met, steps.missing) == (9, 0)


def test_a_recorder_that_has_enough_is_given_no_more_steps(monkeypatch):
    log, ended = Log(), []
    monkeypatch.setattr(log, "end", lambda error, is_last: not ended.append(is_last))
    steps = Steps(log, count=9)
    for _ in range(3):
        with steps():
            pass
    assert (log.events, ended, steps.missing, steps.problem) == ([0], [False], 0, None)


def test_where_nbkit_itself_fails_the_script_runs_on_and_the_problem_says_so(monkeypatch):
    log = Log()
    monkeypatch.setattr(log, "begin", lambda number, frame: number / 0)
    steps = Steps(log, count=9)
    for _ in range(3):
        with steps():
            pass
    assert (log.events, steps.met, steps.missing) == ([], 9, 0)
    assert steps.problem.startswith("nbkit itself failed (ZeroDivisionError: division by zero, at nbkit/command_line/")
    assert "not the script; no more was recorded. Please open an issue" in steps.problem
    assert "Traceback" in steps.problem


def test_where_nbkit_itself_fails_at_the_end_of_a_step_the_error_of_the_step_goes_on(monkeypatch):
    log = Log()
    monkeypatch.setattr(log, "end", lambda error, is_last: {}["gone"])
    steps = Steps(log, count=2)
    with pytest.raises(ValueError), steps():
        raise ValueError
    assert "KeyError" in steps.problem
