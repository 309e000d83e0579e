"""Settings of the process that slow each step down are told where they are on, and nowhere else."""

import sys
import tracemalloc

import pytest
import torch

import nbkit
from nbkit.findings.time.settings import TEXTS


def told():
    model = torch.nn.Linear(4, 4)
    with nbkit.optime() as trace:
        model(torch.randn(2, 4)).square().mean().backward()
    found = trace.findings[trace.findings["rule"] == "slow_setting"]
    assert set(found["severity"]) <= {"hint"}
    return found["message"].tolist()


def deterministic(monkeypatch):
    torch.use_deterministic_algorithms(True, warn_only=True)
    return lambda: torch.use_deterministic_algorithms(False)


def traced(monkeypatch):
    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: None)
    return lambda: sys.settrace(before)


def memory_traced(monkeypatch):
    tracemalloc.start()
    return tracemalloc.stop


def blocking(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    return lambda: None


@pytest.mark.parametrize(
    ("switch", "name"),
    [(deterministic, "deterministic"), (traced, "trace"), (memory_traced, "tracemalloc"), (blocking, "blocking")],
)
def test_what_is_on_is_a_hint(switch, name, monkeypatch):
    undo = switch(monkeypatch)
    try:
        messages = told()
    finally:
        undo()
    assert messages == [TEXTS[name][0]]


def test_nothing_is_told_where_nothing_is_on(monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")  # without a device of CUDA it changes nothing
    assert told() == []
