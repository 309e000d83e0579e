"""Tests optime with threads and other profilers: one recording per process, and no other's events in it."""

import threading

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import nbkit
from nbkit import OptionError
from nbkit.capture.native.library import library
from nbkit.capture.profiler import kineto_recording as module
from tests.capture.timed import level, named, timed


def in_thread(function):
    """Runs the function in a thread of its own; returns what it raised."""
    raised = []

    def run():
        try:
            function()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="other")
    thread.start()
    thread.join()
    return raised


def test_a_second_optime_in_another_thread_is_refused():
    with nbkit.optime() as trace:
        (error,) = in_thread(lambda: timed(lambda: torch.ones(1)))
        torch.ones(1)
    assert isinstance(error, OptionError)
    assert "An optime that began in the thread 'MainThread' is running" in str(error)
    assert len(named(trace, "aten.ones.default")) == 1
    assert in_thread(lambda: timed(lambda: torch.ones(1))) == []


def test_a_profiler_in_another_thread_is_respected():
    with profile(activities=[ProfilerActivity.CPU]):
        (error,) = in_thread(lambda: timed(lambda: torch.ones(1)))
    assert "torch.profiler is running in another thread already" in str(error)
    assert len(timed(lambda: torch.ones(1)).ops) == 4


def test_a_profiler_of_the_step_keeps_its_events_and_the_trace_says_so(capfd):
    with nbkit.optime() as trace, profile(activities=[ProfilerActivity.CPU]) as inner:
        torch.ones(1)
    capfd.readouterr()  # that profiler's own chatter
    assert [event.name for event in inner.events()] == ["aten::ones", "aten::empty", "aten::fill_"]
    assert len(trace.ops) == 0
    assert trace.meta["notes"] == [module.TAKEN]
    assert trace.brief().startswith(f"Not timed: {module.TAKEN}.")
    assert len(timed(lambda: torch.ones(1)).ops) == 4


def test_a_profiler_that_the_step_leaves_on_has_its_events_and_none_of_ours():
    model = nn.Linear(2, 2)
    inner = profile(activities=[ProfilerActivity.CPU])

    def step():
        model(torch.ones(1, 2))
        inner.start()
        model(torch.ones(1, 2))

    trace = timed(step)
    assert torch.autograd.profiler._is_profiler_enabled
    torch.zeros(1)
    inner.stop()
    outermost = [event.name for event in inner.events() if event.cpu_parent is None]
    assert outermost == ["aten::ones", "aten::linear", "aten::zeros"]
    assert len(trace.ops) == 0 and trace.meta["notes"] == [module.TAKEN]
    assert len(timed(lambda: torch.ones(1)).ops) == 4


def test_a_profiler_that_would_begin_in_another_thread_is_refused():
    with nbkit.optime() as trace:
        (error,) = in_thread(lambda: profile(activities=[ProfilerActivity.CPU]).start())
        torch.ones(1)
    assert "A profiler cannot begin here: optime is running in the thread 'MainThread'" in str(error)
    assert len(named(trace, "aten.ones.default")) == 1


def test_a_recording_left_in_another_thread_says_so_and_the_next_one_works():
    timing = nbkit.optime()
    trace = timing.__enter__()
    assert in_thread(lambda: timing.__exit__(None, None, None)) == []
    assert trace.meta["notes"] == [module.ELSEWHERE]
    assert not hasattr(nn.Module.__call__, "patch")
    assert len(timed(lambda: torch.ones(1)).ops) == 4
    assert in_thread(lambda: timed(lambda: torch.ones(1))) == []


@pytest.mark.skipif(library() is None, reason="source lines come from the built recorder")
def test_lines_are_known_after_a_recording_left_in_another_thread():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    timing = nbkit.optime()
    timing.__enter__()
    assert in_thread(lambda: timing.__exit__(None, None, None)) == []
    for _ in range(2):
        trace = timed(lambda: (optimizer.zero_grad(), torch.ones(1)))  # named blocks are noted once, too
        assert trace.ops.loc[trace.ops["op"] == "aten.ones.default", "source"].notna().all()


def test_calls_of_modules_in_other_threads_do_not_count_and_are_said():
    linear = nn.Linear(2, 2)

    def step():
        linear(torch.ones(1, 2))
        in_thread(lambda: linear(torch.ones(1, 2)))
        linear(torch.ones(1, 2))

    trace = timed(step)
    assert level(trace, "module")["module_call"].tolist() == [0, 1]
    assert trace.modules["calls"].tolist() == [2]
    advice = "record inside the thread, or use optrace(threads='all')"
    reason = f"module calls in 1 other thread, whose ops are not recorded: {advice}"
    assert trace.meta["skipped"] == {reason: 1}


def test_an_interrupt_while_it_starts_leaves_nothing_on(monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module.CompiledRegions, "install", interrupt)
        with pytest.raises(KeyboardInterrupt):
            timed(lambda: None)
    assert not torch.autograd._profiler_enabled()
    assert not hasattr(nn.Module.__call__, "patch")
    assert len(timed(lambda: torch.ones(1)).ops) == 4
