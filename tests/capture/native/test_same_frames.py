"""The native recorder and the Python recorder write the same frames, times aside."""

import pandas as pd
import pytest
import torch

import nbkit
from tests.capture.models import MODELS, OPTIMIZERS, train_step
from tests.capture.native.steps import TIMES, Doubling, each_step, traces


def assert_same(expected, actual):
    for name in ("ops", "tensors", "modules"):
        frames = [getattr(trace, name) for trace in (expected, actual)]
        pd.testing.assert_frame_equal(*(frame.drop(columns=TIMES, errors="ignore") for frame in frames))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_frames_of_a_training_step(model, optimizer, monkeypatch):
    def make():
        step = train_step(model, optimizer)
        return lambda: (step(), step())

    assert_same(*traces(make, monkeypatch))


@pytest.mark.filterwarnings("ignore::UserWarning")
@each_step
def test_frames_of_a_step(step, monkeypatch):
    assert_same(*traces(lambda: step, monkeypatch))


def test_frames_inside_a_mode_of_the_user(monkeypatch):
    def recorded(recorder):
        monkeypatch.setenv("NBKIT_RECORDER", recorder)
        with Doubling(), nbkit.optrace() as trace:
            (torch.ones(2, requires_grad=True) * 2).sum().backward()
        return trace

    assert_same(recorded("python"), recorded("native"))


def test_the_comparison_can_fail(monkeypatch):
    (one, _), (other, _) = (traces(lambda: lambda: torch.ones(size), monkeypatch) for size in (2, 3))
    with pytest.raises(AssertionError, match="shape"):
        assert_same(one, other)


def test_only_odd_ops_are_left_to_python(monkeypatch):
    """Otherwise the frames above would be the same because one recorder wrote them all."""
    left = []
    monkeypatch.setattr(
        "nbkit.capture.recorder.dispatch_mode.OpMode._runner", lambda self, func: left.append(str(func)) or func._op
    )
    step = train_step("llama")
    with nbkit.optrace() as trace:
        step()
    assert trace.meta["recorder"] == "native"
    assert set(left) <= {"aten.detach.default", *(name for name in left if name.startswith("profiler."))}
