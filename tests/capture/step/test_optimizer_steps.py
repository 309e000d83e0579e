"""Tests optimizer steps: phase, row and step count; torch's own, the user's, with a closure, and ones that fail."""

import pandas as pd
import pytest
import torch
from torch import nn

import nbkit
from tests.capture.models import aten, record


class Plain(torch.optim.Optimizer):
    """Is a user's optimizer."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            parameter.add_(parameter.grad, alpha=-0.1)


def ready(kind, **options):
    layer = nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    return layer, kind(layer.parameters(), **options)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (torch.optim.AdamW, "torch.optim.AdamW.step"),
        (torch.optim.SGD, "torch.optim.SGD.step"),
        (Plain, f"{__name__}.Plain.step"),
    ],
)
def test_the_ops_of_a_step_stand_under_its_row(kind, name):
    _, optimizer = ready(kind)
    trace = record(optimizer.step)
    first = trace.ops.iloc[0]
    assert (first["op"], first["level"], first["phase"]) == (name, "api", "optimizer")
    assert set(trace.ops["phase"]) == {"optimizer"}
    assert trace.ops["parent_id"].iloc[1:].notna().all()
    assert len(aten(trace)) >= 2


def test_steps_are_counted():
    layer, optimizer = ready(torch.optim.SGD)

    def step():
        for _ in range(3):
            layer(torch.ones(1, 2))
            optimizer.step()
        layer(torch.ones(1, 2))

    trace = record(step)
    assert aten(trace, "aten.addmm")["step"].tolist() == [0, 1, 2, 3]
    assert aten(trace, "aten.add_")["step"].tolist() == [0, 0, 1, 1, 2, 2]


def test_a_closure_runs_the_model_in_its_own_phases():
    layer, optimizer = ready(torch.optim.SGD)

    def closure():
        optimizer.zero_grad()
        loss = layer(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    trace = record(lambda: optimizer.step(closure))
    rows = trace.ops.set_index("op")
    assert rows.loc["torch.nn.functional.linear", "phase"] == "forward"
    assert rows.loc["aten.addmm.default", "module"] == ""
    assert rows.loc["aten.mm.default", "phase"] == "backward"
    assert set(aten(trace, "aten.add_")["phase"]) == {"optimizer"}


def test_a_step_that_fails_ends_its_row_and_what_follows_is_recorded():
    layer, optimizer = ready(torch.optim.SGD)
    optimizer.param_groups[0]["lr"] = "fast"
    with nbkit.optrace() as trace:
        with pytest.raises(TypeError):
            optimizer.step()
        layer(torch.ones(1, 2))
    assert aten(trace, "aten.addmm")["phase"].tolist() == ["forward"]
    linear = trace.ops[trace.ops["op"] == "torch.nn.functional.linear"]
    assert linear["parent_id"].isna().all()
    assert linear["step"].tolist() == [0]


def test_ranges_within_a_step_do_not_end_it_and_that_around_one_that_fails_does():
    class Failing(torch.optim.SGD):
        def step(self):
            with torch.profiler.record_function("part"):
                torch.ones(2).exp()
            torch.ones(2).neg()
            raise ValueError("mine")

    layer, optimizer = ready(Failing)
    with nbkit.optrace() as trace:
        with pytest.raises(ValueError, match="mine"):
            optimizer.step()
        torch.ones(2).cos()
        layer(torch.ones(1, 2))
    rows = trace.ops[trace.ops["level"] == "aten"].set_index("op")
    after = trace.ops.set_index("op").loc["torch.Tensor.cos"]
    assert after["phase"] == "other" and pd.isna(after["parent_id"])
    assert rows.loc[["aten.exp.default", "aten.neg.default"], "phase"].tolist() == ["optimizer", "optimizer"]
    assert rows.loc["aten.addmm.default", "phase"] == "forward"


def test_a_step_with_ranges_in_it_lasts_to_its_end_and_counts():
    class Ranged(torch.optim.SGD):
        def step(self):
            with torch.profiler.record_function("part"):
                torch.ones(2).exp()
            torch.ones(2).neg()

    layer, optimizer = ready(Ranged)
    trace = record(lambda: (optimizer.step(), layer(torch.ones(1, 2))))
    assert aten(trace, "aten.addmm")["step"].tolist() == [1]
    (last,) = aten(trace, "aten.neg")["start_us"]
    assert trace.ops["start_us"][0] + trace.ops["total_time_us"][0] > last


@pytest.mark.parametrize(
    ("backward", "name"),
    [
        (lambda loss, leaf: loss.backward(), "torch.Tensor.backward"),
        (lambda loss, leaf: torch.autograd.backward([loss]), "torch.autograd.backward"),
        (lambda loss, leaf: torch.autograd.grad(loss, leaf), "torch.autograd.grad"),
    ],
)
def test_the_ops_of_a_backward_pass_stand_under_the_call_that_started_it(backward, name):
    leaf = torch.ones(2, requires_grad=True)
    loss = leaf.exp().sum()
    trace = record(lambda: backward(loss, leaf))
    assert trace.ops["op"].iloc[0] == name
    assert set(trace.ops["phase"]) == {"backward"}
    assert set(aten(trace)["parent_id"]) == {0}


def test_a_step_that_autograd_follows_is_optimizer_work_even_with_a_closure():
    """Its own ops run with gradients enabled, as those of a closure do."""
    weight = torch.ones(2, requires_grad=True).clone()
    weight.grad = torch.ones(2)
    optimizer = torch.optim.SGD([weight], lr=0.5, differentiable=True)
    trace = record(lambda: optimizer.step(lambda: torch.zeros(())))
    assert weight.tolist() == [0.5, 0.5] and weight.grad_fn is not None
    assert aten(trace, "aten.add_")["phase"].tolist() == ["optimizer"]


@pytest.mark.parametrize("recorder", ["observer", "python"])
def test_a_closure_that_enables_gradients_itself_runs_in_its_own_phases(recorder, monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", recorder)
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    @torch.enable_grad()
    def closure():
        loss = (weight * 2).sum()
        loss.backward()
        return loss

    trace = record(torch.no_grad()(lambda: optimizer.step(closure)))
    phases = aten(trace).groupby("op")["phase"].agg(list)
    assert phases["aten.mul.Tensor"] == ["forward", "backward"]
    assert (phases["aten.sum.default"], phases["aten.add_.Tensor"]) == (["forward"], ["optimizer"])
