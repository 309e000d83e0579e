"""What is changed before the backward pass that needs it, and graphs that are gone: named with the line."""

import pytest
import torch
from torch import nn

import nbkit

X, ZEROS = torch.randn(8, 4), torch.zeros(8, 4)
ONE, OTHER, CELL = nn.Linear(4, 4), nn.Linear(4, 4), nn.GRUCell(4, 4)


def found(step):
    """What opaudit finds of a step that raises, or not."""
    try:
        with nbkit.opaudit() as trace:
            step()
    except RuntimeError as error:
        assert "inplace operation" in str(error) or "second time" in str(error)
    rules = ["modified_in_place", "second_backward", "changed_before_backward"]
    return [*trace.findings[trace.findings["rule"].isin(rules)].itertuples()]


def trained(change):
    """A step in which something happens to the hidden values before backward()."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 4))

    def step():
        hidden = net[:2](X)
        loss = net[2](hidden).square().sum()
        change(hidden)
        loss.backward()

    return step


def scaled(hidden):
    with torch.no_grad():
        hidden.mul_(2)


def hidden_from_autograd(hidden):
    hidden.data.mul_(2)


def adversary():
    """Steps the second model between two backward passes through it."""
    optimizer = torch.optim.SGD(OTHER.parameters(), 0.1)
    result = OTHER(ONE(X))
    result.square().mean().backward(retain_graph=True)
    optimizer.step()
    result.sum().backward()


def test_the_line_that_autograd_refuses_is_named():
    (finding,) = found(trained(scaled))
    assert (finding.rule, finding.severity, finding.source_text) == ("modified_in_place", "error", "hidden.mul_(2)")
    assert finding.message == (
        "mul_ changes a tensor of shape [8, 4] in place, which the backward pass still needs as it was: autograd "
        "refuses to go on"
    )


def test_a_step_of_an_optimizer_between_two_backward_passes_is_named():
    (finding,) = found(adversary)
    assert finding.rule == "modified_in_place" and "changes the parameter weight in place" in finding.message
    assert finding.source_text == "optimizer.step()"


def test_what_autograd_cannot_see_is_a_warning():
    (finding,) = found(trained(hidden_from_autograd))
    assert (finding.rule, finding.severity) == ("changed_before_backward", "warning")
    assert finding.source_text == "hidden.data.mul_(2)"
    assert finding.message == (
        "mul_ changes in place what addmm keeps for its backward pass, and mm reads the changed values there: the "
        "gradients are those of another function"
    )


def after(hidden):
    hidden * 2


@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell, nn.RNNCell])
def test_recurrent_cells_and_ops_in_place_that_are_right_are_not_named(cell):
    def step():
        state = cell(4, 4)(X)
        state = state[0] if isinstance(state, tuple) else state
        kept = (state + 1).mul_(2).relu_()
        kept.sum().backward()

    assert found(step) == []
    assert found(trained(after)) == []


def carried():
    state = ZEROS
    for _ in range(2):
        state = CELL(X, state)
        state.square().mean().backward()


def called_twice():
    loss = nn.Linear(4, 4)(X).square().mean()
    loss.backward()
    loss.backward()


def test_a_state_that_is_carried_over_is_named():
    (finding,) = found(carried)
    assert (finding.rule, finding.severity) == ("second_backward", "error")
    assert finding.source_text == "state = CELL(X, state)"
    assert finding.message == (
        "addmm reads what add_ made before the last backward pass, whose graph is gone: autograd refuses to go on"
    )


def test_a_second_call_on_the_same_loss_is_named():
    (finding,) = found(called_twice)
    assert (finding.rule, finding.source_text) == ("second_backward", "loss.backward()")
    assert finding.message.startswith("the backward pass goes through what a backward pass has gone through before")
