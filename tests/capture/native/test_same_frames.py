"""The native recorder and the Python recorder write the same frames, times aside."""

import pandas as pd
import pytest
import torch
from torch.utils._python_dispatch import _len_torch_dispatch_stack

import nbkit
from tests.capture.models import MODELS, OPTIMIZERS, train_step
from tests.capture.native.steps import TIMES, Doubling, each_step, traces, users_mode, without_users_mode

# What torch does otherwise where any dispatch mode is on, as the Python recorder is one: detach() of saved values goes
# through the mode, an in-place op's saved input is cloned in its sight, reshape takes view, and gradients that meet are
# added out of place. And it sees ops without tensors, but not
# detach_(), as torch.tensor() calls it.
UNLIKE = {
    *("aten.promote_types.default", "torch.promote_types", "aten.detach_.default"),
    *("aten.detach.default", "aten.clone.default", "aten.view.default", "aten._reshape_alias.default"),
    *("aten.add.Tensor", "aten.add_.Tensor"),
}
SAME = [
    *("op_id", "parent_id", "forward_op_id", "level", "op", "model", "module", "module_call", "phase", "step"),
    *("device", "thread", "source"),
]
SAME_TENSORS = ["op_id", "role", "position", "dtype", "shape", "device", "numel", "size_bytes"]


def assert_same(expected, actual):
    """Compares whole frames where the same ops ran, else all but those that torch runs otherwise under a mode."""
    if expected.ops["op"].equals(actual.ops["op"]):
        for name in ("ops", "tensors", "modules"):
            frames = [getattr(trace, name) for trace in (expected, actual)]
            pd.testing.assert_frame_equal(*(frame.drop(columns=TIMES, errors="ignore") for frame in frames))
        return
    sides = [(trace, trace.ops.index[~trace.ops["op"].isin(UNLIKE)].tolist()) for trace in (expected, actual)]
    for name, columns in (("ops", SAME), ("tensors", SAME_TENSORS)):
        pd.testing.assert_frame_equal(*(kept_rows(trace, kept, name)[columns] for trace, kept in sides))


def kept_rows(trace, kept, name):
    """Returns the rows of a frame of these ops, with the ops' positions in `kept` for their numbers; -1 for others."""
    numbers = {op: number for number, op in enumerate(kept)}
    frame = getattr(trace, name)
    rows = frame[frame["op_id"].isin(kept)].reset_index(drop=True)
    links = [column for column in ("op_id", "parent_id", "forward_op_id") if column in rows]
    return rows.assign(**{column: rows[column].map(numbers).fillna(-1).astype(int) for column in links})


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
    if step is users_mode:
        pytest.skip("a dispatch mode sees what another one runs inside an op")
    assert_same(*traces(lambda: step, monkeypatch))


def test_what_a_mode_of_the_user_runs_for_an_op_is_part_of_it(monkeypatch):
    assert_same(*(traces(lambda: step, monkeypatch)[1] for step in (without_users_mode, users_mode)))


def test_frames_inside_a_mode_of_the_user(monkeypatch):
    def recorded(recorder):
        monkeypatch.setenv("NBKIT_RECORDER", recorder)
        with Doubling(), nbkit.optrace() as trace:
            (torch.ones(2, requires_grad=True) * 2).sum().backward()
        return trace

    assert_same(recorded("python"), recorded("native"))


def test_the_comparison_can_fail(monkeypatch):
    (one, _), (other, _) = (traces(lambda: lambda: torch.ones(size), monkeypatch) for size in (2, 3))
    with pytest.raises(AssertionError, match="arguments"):
        assert_same(one, other)


def test_nothing_is_left_to_a_dispatch_mode():
    """Otherwise the frames above would be the same because one recorder wrote them all."""
    with nbkit.optrace() as trace:
        assert _len_torch_dispatch_stack() == 0
        train_step("llama")()
    assert trace.meta["recorder"] == "observer"
    assert len(trace.ops) > 200
