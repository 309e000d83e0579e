"""Tests that a trace tells of modules that ran in other threads, which no recording sees."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import pytest
import torch
from torch import nn

import nbkit
from nbkit.views.summary.facts import facts
from tests.support.timed_names import timed_name

VERBS = {"optrace": nbkit.optrace, "opcheck": nbkit.opcheck, "opdiff": nbkit.opdiff, "optime": nbkit.optime}
REASON = "module calls in {}, whose ops are not recorded: record inside the thread, or use optrace(threads='all')"
MODEL = nn.Sequential(nn.Linear(2, 2), nn.ReLU())


@pytest.fixture(params=["native", "python"], autouse=True)
def recorder(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


def run():
    return MODEL(torch.ones(1, 2))


def threads_one_after_the_other(count):
    for _ in range(count):
        thread = Thread(target=run)
        thread.start()
        thread.join()


def told(trace):
    return {reason: count for reason, count in trace.meta["skipped"].items() if "other thread" in reason}


@pytest.mark.parametrize("verb", VERBS)
def test_the_trace_says_in_how_many_threads(verb):
    with VERBS[verb]() as trace:
        threads_one_after_the_other(3)
    assert told(trace) == {REASON.format("3 other threads"): 9}
    assert f"skipped 9: {REASON.format('3 other threads')}" in facts(trace).notes
    assert trace.frames["modules"].empty


@pytest.mark.parametrize("verb", VERBS)
def test_threads_of_an_executor_count_once_each(verb):
    both_run = Barrier(2)

    def run_beside_the_other():
        both_run.wait(timeout=20)
        return run()

    with VERBS[verb]() as trace, ThreadPoolExecutor(2) as executor:
        for _ in range(2):
            list(executor.map(lambda _: run_beside_the_other(), range(2)))
        torch.ones(3) * 2
    assert sum(told(trace).values()) == 12
    assert trace.ops["op"].isin(["aten.mul.Tensor", timed_name("aten.mul.Tensor")]).sum() == 1
    assert not trace.ops["op"].str.startswith("aten.addmm").any()
    assert list(told(trace)) == [REASON.format("2 other threads")]


def test_a_thread_that_has_begun_before_the_recording_counts():
    with ThreadPoolExecutor(1) as executor:
        executor.submit(run).result()
        with nbkit.opcheck() as trace:
            executor.submit(run).result()
            run()
    assert told(trace) == {REASON.format("1 other thread"): 3}
    assert trace.modules["calls"].tolist() == [1, 1, 1]


def test_a_recording_inside_the_thread_sees_the_ops_and_the_one_around_says_nothing():
    inner = []

    def record():
        with nbkit.optrace() as trace:
            run()
        inner.append(trace)

    with nbkit.optrace() as outer, ThreadPoolExecutor(1) as executor:
        executor.submit(record).result()
    assert "aten.addmm.default" in inner[0].ops["op"].tolist()
    assert told(inner[0]) == told(outer) == {}


def test_a_step_in_one_thread_says_nothing():
    with nbkit.optrace() as trace:
        torch.utils.checkpoint.checkpoint(MODEL, torch.ones(1, 2), use_reentrant=False).sum().backward()
    assert told(trace) == {}
