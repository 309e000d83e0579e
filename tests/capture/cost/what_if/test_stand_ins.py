"""What stands for optimizers and what they are asked for: their state, names, and steps that do not run otherwise."""

from functools import partial

import pytest
import torch
from torch import nn

import nbkit
from tests.capture.cost.what_if.cases import Training
from tests.support.garbage import frozen


class Counting(torch.optim.Optimizer):
    """Keeps a number and a tensor for each parameter."""

    def __init__(self, parameters, counts):
        super().__init__(parameters, {"lr": 0.1})
        self.note = counts.append

    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            if not state:
                state.update(count=0, moved=torch.zeros_like(parameter))
            state["count"] += 1
            self.note(state["count"])
            parameter -= state["moved"].add_(parameter.grad)


def test_numbers_in_the_state_of_an_optimizer_stay_numbers():
    counts, model, x = [], nn.Linear(4, 4), torch.ones(2, 4)
    optimizer = Counting(model.parameters(), counts)

    def step():
        model(x).sum().backward()
        optimizer.step()

    step()
    moved = [of["moved"] for of in optimizer.state.values()]
    nbkit.what_if(step, dtype=torch.bfloat16)
    assert counts == [1, 1, *[2] * 4]  # of weight and bias
    assert [of["count"] for of in optimizer.state.values()] == [1, 1]
    assert all(of["moved"] is before for of, before in zip(optimizer.state.values(), moved, strict=True))


def test_an_optimizer_takes_its_own_steps_again():
    """Also where the garbage collector, which knows most of what a step changes, does not look."""
    model, x = nn.Linear(4, 4), torch.ones(2, 4)
    plain, scheduled = (torch.optim.SGD([one], lr=0.1) for one in model.parameters())
    torch.optim.lr_scheduler.StepLR(scheduled, 1)
    before = scheduled.step

    def step():
        model(x).sum().backward()
        plain.step()
        scheduled.step()

    with frozen():
        nbkit.what_if(step, optimizer=torch.optim.Adagrad)
    assert "step" not in vars(plain) and vars(scheduled)["step"] is before


def test_what_makes_no_optimizer_is_named_as_it_is_written():
    with pytest.raises(nbkit.OptionError, match=r"optimizer=functools.partial\(<class 'list'>\) makes a list"):
        nbkit.what_if(Training("Recurrent", optimizer=torch.optim.SGD, steps=0).step, optimizer=partial(list))


def test_a_step_that_runs_once_alone_is_asked_for_one_change_at_a_time():
    model, x, calls = nn.Linear(4, 4), torch.ones(2, 4), []

    def step():
        calls.append(model(x))
        if len(calls) > 1:
            raise ValueError("no second time")

    with pytest.raises(
        nbkit.CostError, match=r"no second time; ask for one change at a time to see which one it is\.$"
    ):
        nbkit.what_if(step, dtype=torch.bfloat16)
