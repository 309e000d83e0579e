"""opmonitor: steps of a training that runs in a notebook or script, with what its folder holds."""

import pytest
import torch
from torch import nn

import nbkit
from nbkit.errors import OptionError, TraceError


def train(steps, *, spike=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    losses = []
    for number in range(steps):
        x = torch.randn(6, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True) * (100 if number == spike else 1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [*model.parameters()], torch.randn(3), model


def test_the_steps_of_a_training_with_its_layers_and_a_spike():
    with nbkit.opmonitor(name="run") as trace:
        losses, *_ = train(30, spike=20)
    assert trace.steps["loss"].tolist() == pytest.approx(losses)
    assert (trace.steps["optimizer_steps"] == 1).all() and (trace.steps["learning_rate"] == 0.01).all()
    assert trace.steps["gradient_norm"].head(20).notna().all()
    assert trace.findings["rule"].tolist() == ["loss_spike"] and trace.findings["step"].tolist() == [20]
    metrics = trace.frames["metrics"]
    assert {"gradient_norm/0", "update_norm/2", "activation_max/2"} <= set(metrics["name"])
    assert "30 steps" in trace.brief() and "The loss jumps" in trace.brief()


def test_what_runs_inside_computes_the_same_bits():
    bare = train(25)
    with nbkit.opmonitor():
        watched = train(25)
    assert watched[0] == bare[0] and torch.equal(watched[2], bare[2])
    assert all(map(torch.equal, watched[1], bare[1]))
    assert not any(module._forward_hooks for module in watched[3].modules())


def test_a_folder_has_the_trace_in_the_end_and_another_run_replaces_it(tmp_path):
    for steps in (5, 7):
        with nbkit.opmonitor(tmp_path / "out") as trace:
            assert [path.name for path in (tmp_path / "out").iterdir() if path.name != "audit"] == ["running"]
            train(steps)
        loaded = nbkit.load(tmp_path / "out" / "audit")
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["audit"]
        assert len(loaded.steps) == len(trace.steps) == steps and len(loaded.frames["metrics"])


def test_a_training_that_raises_keeps_its_steps():
    monitor = nbkit.opmonitor()
    with pytest.raises(ZeroDivisionError), monitor as trace:
        train(3)
        raise ZeroDivisionError
    assert trace.steps["error"].tolist()[-1] == "ZeroDivisionError" and len(trace.steps) == 4
    assert trace.meta["complete"] is False


def test_two_at_a_time_and_a_place_that_is_taken_are_refused(tmp_path):
    with nbkit.opmonitor(), pytest.raises(OptionError, match="watches already; leave that first"):
        nbkit.opmonitor().__enter__()
    (tmp_path / "audit").write_text("mine")
    with pytest.raises(TraceError, match="is not a trace; choose another name"):
        nbkit.opmonitor(tmp_path)


def test_nothing_ran():
    with nbkit.opmonitor() as trace:
        pass
    assert len(trace.steps) == 0 and "0 steps" in trace.brief()
