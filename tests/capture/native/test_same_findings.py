"""opcheck finds the same with the native recorder as with the Python recorder."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import torch

import nbkit
from tests.capture.models import MODELS, in_any_mode, recorded_ops, train_step
from tests.capture.native.steps import each_step, users_mode

BAD = torch.full((3,), float("nan"))


def product_of_infinities():
    x = torch.tensor([1e30, 2.0], requires_grad=True)
    (x * x - x * x).sum().backward()


def overwritten():
    x = torch.tensor([1.0, 0.0])
    x[1:].log_()
    x.add_(1)
    x.zero_()
    x.div_(0.0)


def underflowing():
    (torch.full((4, 4), 1e-30) * torch.full((4, 4), 1e-30)).sum()


def given_bad():
    with torch.autocast("cpu", torch.float16):
        torch.nn.Linear(3, 2)(BAD).sum().backward()


FAULTY = (product_of_infinities, overwritten, underflowing, given_bad)


def found(step, recorder, monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", recorder)
    torch.manual_seed(0)
    with nbkit.opcheck() as trace:
        step()
    assert trace.meta["recorder"] == {"python": "python", "native": "observer"}[recorder]
    return trace


# Of these a dispatch mode sees others: views, ranges, ops on dtypes; it also sees the clone that an in-place op saves.
UNLIKE = re.compile("not looked at: (views|ops that change a tensor's metadata|metadata ops|ops that return no tensor)")


def counted(trace):
    left_out = {reason: count for reason, count in trace.meta["skipped"].items() if reason.startswith("not looked at")}
    left_out = {reason: count for reason, count in left_out.items() if not UNLIKE.match(reason)}
    return (
        trace.meta["checked_tensors"] - recorded_ops(trace)["aten.clone.default"],
        trace.meta["propagated_ops"],
        left_out,
    )


def without_ids(findings):
    measured = [
        {**json.loads(text), "op_ids": None, "calls": None, "follows_from": None} for text in findings["evidence"]
    ]
    return findings.drop(columns="op_id").assign(evidence=list(map(json.dumps, measured)))


def assert_same(step, monkeypatch):
    first, second = (found(step, recorder, monkeypatch) for recorder in ("python", "native"))
    # The rows are not the same: what torch runs is not under a dispatch mode.
    pd.testing.assert_frame_equal(without_ids(first.findings), without_ids(second.findings))
    assert counted(first) == counted(second)
    return second


@pytest.mark.parametrize("step", FAULTY, ids=lambda step: step.__name__)
def test_findings_of_a_faulty_step(step, monkeypatch):
    trace = assert_same(step, monkeypatch)
    assert len(trace.findings)
    assert trace.meta["checked_tensors"]


@pytest.mark.parametrize("model", MODELS)
def test_a_training_step_is_clean(model, monkeypatch):
    assert assert_same(lambda: train_step(model)(), monkeypatch).findings.empty


@pytest.mark.filterwarnings("ignore::UserWarning")
@each_step
def test_findings_of_a_step(step, monkeypatch):
    if step is users_mode:
        pytest.skip("a dispatch mode sees what another one runs inside an op")
    assert_same(step, monkeypatch)


def of_no_api_call():
    torch.from_numpy(np.ones(3, dtype="float32")).add_(1)
    torch.nn.Linear(3, 2)(torch.tensor([1.0, 2.0, 3.0])).sum().backward()


@pytest.mark.parametrize("recorder", ["python", "native"])
@pytest.mark.parametrize("step", [of_no_api_call, *FAULTY], ids=lambda step: step.__name__)
def test_what_opcheck_does_itself_is_not_in_its_trace(step, recorder, monkeypatch):
    checked = found(step, recorder, monkeypatch)
    with nbkit.optrace() as traced:
        step()
    assert in_any_mode(recorded_ops(checked)) == in_any_mode(recorded_ops(traced))
    skipped = {reason: count for reason, count in checked.meta["skipped"].items() if not reason.startswith("not l")}
    assert skipped == traced.meta["skipped"]
