"""The first large call of sin or cos in a process is as exact as the second, once nbkit has begun to record."""

import subprocess
import sys

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import nbkit
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.vector_math import FUNCTIONS, settle_vector_math
from tests.capture.operators.folders import captured

# Of processes that do this without a recording, one in seven has another first result on two threads.
SCRIPT = """
import sys
import torch

x = torch.linspace(0, 64, 8192) * 1  # the threads are there
with __import__("nbkit").optrace():
    first = x.cos()
sys.exit(0 if torch.equal(first, x.cos()) else 1)
"""


def test_the_first_call_in_a_process_is_as_exact_as_the_second():
    command = [sys.executable, "-c", SCRIPT]
    for _ in range(4):
        pair = [subprocess.Popen(command) for _ in range(2)]
        assert [process.wait(timeout=100) for process in pair] == [0, 0]


@pytest.fixture
def unsettled():
    settle_vector_math.cache_clear()
    yield
    settle_vector_math()


def test_a_recording_calls_each_function_first(unsettled):
    assert_each_function_is_called_twice_by(Recording)


def test_a_replay_calls_each_function_first(tmp_path, unsettled):
    captured(tmp_path / "calls", lambda: torch.arange(4).neg(), ops="aten.neg")
    settle_vector_math.cache_clear()
    assert_each_function_is_called_twice_by(lambda: nbkit.opreplay(tmp_path / "calls"))


def assert_each_function_is_called_twice_by(run):
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    counts = {event.key.removeprefix("aten::").removeprefix("special_"): event.count for event in seen.key_averages()}
    assert {name: counts.get(name) for name in FUNCTIONS} == dict.fromkeys(FUNCTIONS, 2)


@pytest.mark.parametrize(
    "mode",
    [torch.no_grad, torch.inference_mode, lambda: torch.device("meta"), lambda: torch.autocast("cpu"), nbkit.optrace],
)
def test_it_settles_in_any_mode_and_draws_no_random_number(unsettled, mode):
    random = torch.get_rng_state()
    with mode():
        settle_vector_math()
    assert torch.equal(torch.get_rng_state(), random)
