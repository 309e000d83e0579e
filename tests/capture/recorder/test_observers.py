"""Tests observers: the hooks of one in their order; several in one recording give what each gives alone."""

from contextlib import contextmanager

import pandas as pd
import pytest
import torch

import nbkit
from nbkit import NonFiniteError
from nbkit.capture.check.opcheck import CheckObserver
from nbkit.capture.diff.opdiff import DiffObserver
from nbkit.capture.diff.options import scope
from nbkit.capture.frames.selection import Selection
from nbkit.capture.recorder.observer import Observer
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.replay.reference import Reference
from nbkit.numerics.noise_ratio import THRESHOLD
from nbkit.numerics.tolerances import Tolerances
from nbkit.schema import PARTS
from tests.capture.models import in_any_mode, recorded_ops
from tests.capture.recorder.test_nesting import assert_same_frames, recorded, recorder  # noqa: F401


class Diary(Observer):
    """Writes down which hook was called, and the ops that ran."""

    def __init__(self):
        self.lines = []

    @contextmanager
    def below(self, recording, modules):
        self.lines.append("on")
        yield
        self.lines.append("off")

    def around(self, func, run):
        def run_and_note(*args, **kwargs):
            self.lines.append(f"before {func._opname}")
            out = run(*args, **kwargs)
            self.lines.append(f"after {func._opname}")
            return out

        return run_and_note

    def frames(self, trace, ops, op_ids):
        self.lines.append(f"frames of {len(ops)} ops")
        return {"parts": PARTS.frame()}, {"notes": ["A diary."], "diary": self.lines[:], "pages": 1}

    def completed(self, frames, meta):
        self.lines.append(f"completed {sorted(frames)}")
        return frames, {**meta, "pages": 2}

    def forget(self):
        self.lines.append("forgotten")


class SecondDiary(Diary):
    """Is a second one: of each kind a recording takes one."""


def both(**options):
    """Returns opcheck and opdiff in one recording."""
    everything = scope(Selection(), None, 1, None, THRESHOLD)
    return Recorder(CheckObserver(**options), DiffObserver(everything, Reference("cpu"), Tolerances(None)))


def test_hooks_come_in_their_order():
    diary = Diary()
    with Recorder(diary, name="mine") as trace:
        torch.ones(2).exp()
    assert diary.lines == [
        *("on", "before ones", "after ones", "before exp", "after exp", "off", "frames of 4 ops"),
        *("completed ['lines', 'modules', 'ops', 'parts', 'tensors']", "forgotten"),
    ]
    assert (trace.meta["notes"], trace.meta["pages"], trace.meta["name"]) == (["A diary."], 2, "mine")


def test_an_observer_without_hooks_adds_nothing():
    (trace,), left = recorded(Recorder(Observer()))
    (bare,), alone = recorded(nbkit.optrace())
    assert_same_frames(trace, bare)
    assert left == alone


def test_the_first_observer_stands_nearest_to_the_op():
    inner, outer = Diary(), SecondDiary()
    inner.lines = outer.lines = []
    with Recorder(inner, outer):
        torch.ones(2)
    assert inner.lines[:7] == ["on", "on", *["before ones"] * 2, *["after ones"] * 2, "off"]


def test_an_observer_of_each_kind_at_most():
    with pytest.raises(AssertionError):
        Recorder(Diary(), Diary())


def test_an_error_keeps_what_was_seen():
    diary = Diary()
    with pytest.raises(KeyboardInterrupt), Recorder(diary) as trace:
        torch.ones(2)
        raise KeyboardInterrupt
    assert trace.meta["diary"][:4] == ["on", "before ones", "after ones", "off"]
    assert (trace.complete, diary.lines[-1]) == (False, "forgotten")


def test_two_observers_in_one_recording_give_what_each_gives_alone():
    (trace,), left = recorded(both())
    (checked,), _ = recorded(nbkit.opcheck())
    (compared,), bare = recorded(nbkit.opdiff())
    assert left == bare == recorded()[1]
    assert set(trace.frames) == {"ops", "tensors", "modules", "lines", "findings", "diffs"}
    # Alone opcheck takes no mode, in which torch itself runs some ops otherwise.
    assert in_any_mode(recorded_ops(trace)) == in_any_mode(recorded_ops(checked))
    pd.testing.assert_frame_equal(*(one.findings.drop(columns="op_id") for one in (trace, checked)))
    assert_same_frames(trace, compared, ["ops", "tensors", "modules", "diffs"])
    assert trace.findings["op"].tolist() == ["aten.log.default"]
    assert len(trace.diffs) > 100
    assert trace.meta["checked_tensors"] >= checked.meta["checked_tensors"] > 100
    counts = ("propagated_ops", "compared_ops", "mismatches", "captured")
    assert {name: trace.meta[name] for name in counts} == {
        name: {**checked.meta, **compared.meta}[name] for name in counts
    }


def test_one_observer_may_end_the_step_for_both():
    with pytest.raises(NonFiniteError), both(stop=True) as trace:
        torch.ones(2).exp()
        torch.zeros(2).log()
    assert trace.findings["op"].tolist() == ["aten.log.default"]
    assert "aten.exp.default" in set(trace.diffs["op"])
    assert not trace.complete
