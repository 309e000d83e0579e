"""Lines and hooks that each step has more of: what is named, and steps that vary."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

X, Y = torch.randn(8, 4), torch.arange(8) % 4
RULES = ["growing_step", "added_hooks"]


def found(more, steps=5):
    """What is found of steps that each do something more, given the model, the step's number and its loss."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbkit.opaudit() as trace:
        for number in range(steps):
            loss = F.cross_entropy(model(X), Y)
            more(model, number, loss.detach())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return [*trace.findings[trace.findings["rule"].isin(RULES)].itertuples()]


def test_a_line_that_runs_over_a_list_which_grows_is_a_hint():
    losses = []

    def averaged(model, number, loss):
        losses.append(loss)
        return sum(one * 0.1 for one in losses)

    (finding,) = found(averaged)
    assert (finding.rule, finding.severity) == ("growing_step", "hint")
    assert finding.source_text == "return sum(one * 0.1 for one in losses)"
    assert finding.message == (
        "This line runs 2, 4, 6, 8 ops in the first steps, and 10 in step 4: more with each step"
    )


def test_a_hook_that_each_step_adds_is_a_warning():
    seen = []
    (finding,) = found(lambda model, *_: model[2].register_forward_hook(lambda *given: seen.append(1)), 3)
    assert (finding.rule, finding.severity, finding.module) == ("added_hooks", "warning", "2")
    assert finding.message == (
        "2 of Sequential has 3 hooks at step 2, and had 1 at step 0: each step adds some, and all of them run"
    )


def removed(model, number, loss):
    model[2].register_forward_hook(lambda *given: None).remove()


def once(model, number, loss):
    if number == 0:
        model[2].register_forward_hook(lambda *given: None)


@pytest.mark.parametrize(
    "more",
    [
        removed,
        once,
        lambda model, number, loss: [loss * 2 for _ in range([3, 4, 5, 9, 11][number])],
        lambda model, number, loss: [loss * 2 for _ in range(min(number, 3))],
        lambda model, number, loss: [loss * 2 for _ in range(3)],
    ],
    ids=["removed", "once", "lengths", "warm-up", "equal"],
)
def test_steps_that_vary_are_right(more):
    assert found(more) == []
