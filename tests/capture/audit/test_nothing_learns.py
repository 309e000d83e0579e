"""Tests that opaudit says so where no parameter learns: no gradient at any step, or no step that uses gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from tests.capture.audit.right.shared import Net, batch, mlp

X, Y = torch.linspace(-2, 2, 64).view(8, 8), torch.arange(8) % 2


def audited(body, steps=4, is_given=True):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    with nbkit.opaudit(optimizer=optimizer if is_given else None) as trace:
        for _ in range(steps):
            body(model, optimizer)
    return trace


def loss_of(model):
    return F.cross_entropy(model(X), Y)


def trained_on(loss):
    def body(model, optimizer):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()

    return body


def without_autograd(model):
    with torch.no_grad():
        loss = loss_of(model)
    return loss.requires_grad_()


CUTS = {
    "item": (
        lambda model: torch.tensor(loss_of(model).item(), requires_grad=True),
        "the graph is cut by torch.Tensor.item at ",
    ),
    "float": (
        lambda model: torch.tensor(float(loss_of(model).detach()), requires_grad=True),
        "the graph is cut by aten.detach at ",
    ),
    "accuracy": (
        lambda model: (1 - (model(X).argmax(1) == Y).float().mean()).requires_grad_(),
        "the graph is cut by aten.argmax at ",
    ),
    "detach": (lambda model: loss_of(model).detach().requires_grad_(), "the graph is cut by aten.detach at "),
    "no_grad": (without_autograd, "the loss is computed without autograd (torch.no_grad) at "),
}


@pytest.mark.parametrize("how", CUTS)
def test_what_cuts_the_loss_off_is_named(how):
    loss, why = CUTS[how]
    [finding] = audited(trained_on(loss)).findings.itertuples()
    assert (finding.rule, finding.severity, finding.count) == ("no_gradient", "error", 4)
    assert finding.message.startswith(
        f"AdamW steps 4 times and changes nothing: all 4 parameters of Sequential get no gradient; {why}"
    )
    assert "test_nothing_learns.py" in finding.source
    assert finding.source_text in (finding.message.split("`")[1], "return F.cross_entropy(model(X), Y)")


@pytest.mark.parametrize(("steps", "times"), [(1, "once"), (3, "3 times")])
def test_a_backward_that_is_never_called_is_said(steps, times):
    def body(model, optimizer):
        optimizer.zero_grad()
        loss_of(model)
        optimizer.step()

    [finding] = audited(body, steps, is_given=False).findings.itertuples()
    assert (finding.rule, finding.severity, finding.advice) == (
        "no_gradient",
        "error",
        "Call loss.backward() before optimizer.step().",
    )
    assert finding.message == (
        f"AdamW steps {times} and changes nothing: all 4 parameters of Sequential get no gradient; backward() is never "
        "called"
    )


def test_a_backward_of_something_else_is_said():
    other = nn.Parameter(torch.ones(()))
    [finding] = audited(trained_on(lambda model: other * loss_of(model).argmin())).findings.itertuples()
    assert finding.severity == "error"
    assert "; the graph is cut by aten.argmin at " in finding.message
    [finding] = audited(trained_on(lambda model: (other * 1, model(X))[0])).findings.itertuples()
    assert finding.message.endswith("; backward() is called on what does not depend on them")


def test_what_a_schedule_steps_without_a_model_is_nothing():
    def body(model, optimizer):
        optimizer.step()

    assert not len(audited(body).findings)


def backward_only(model, optimizer):
    optimizer.zero_grad()
    loss_of(model).backward()


def clipped_only(model, optimizer):
    model.zero_grad()
    loss_of(model).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)


@pytest.mark.parametrize("is_given", [True, False])
@pytest.mark.parametrize("body", [backward_only, clipped_only])
def test_gradients_that_no_optimizer_uses_are_a_warning(body, is_given):
    [finding] = audited(body, 4, is_given).findings.itertuples()
    assert (finding.rule, finding.severity, finding.count) == ("no_step", "warning", 3)
    assert finding.message == (
        "No optimizer steps: the gradients of 3 of 4 backward passes are cleared (zero_grad()) before one uses them, "
        "and all 4 parameters of Sequential stay as before"
    )
    assert finding.source_text == "loss_of(model).backward()"


def test_a_part_of_a_step_is_no_fault():
    assert audited(backward_only, 2).findings["severity"].tolist() == ["hint"]
    assert not len(audited(backward_only, 1).findings)
    assert not len(audited(lambda model, _: loss_of(model).backward(), 6).findings)


def test_gradients_without_any_optimizer_are_no_fault():
    model = Net()
    with nbkit.opaudit() as trace:
        for _ in range(4):
            model.zero_grad()
            model(batch()).square().mean().backward()
    assert not len(trace.findings)


def in_parts(set_to_none, count):
    def body(model, optimizer):
        for x, y in zip(X.chunk(4), Y.chunk(4), strict=True):
            optimizer.zero_grad(set_to_none)
            (F.cross_entropy(model(x), y) / 4).backward()
        optimizer.step()

    return audited(body, count).findings


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_cleared_between_parts_of_a_batch_are_named(set_to_none):
    [finding] = in_parts(set_to_none, 2).itertuples()
    assert (finding.rule, finding.severity) == ("discarded_gradient", "warning")
    assert finding.source_text == "(F.cross_entropy(model(x), y) / 4).backward()"
    assert finding.message.endswith(" of 8 backward passes are cleared (zero_grad()) before an optimizer uses them")
    assert in_parts(set_to_none, 1)["severity"].tolist() == ["hint"]


def test_a_step_before_the_backward_pass_is_told_from_gradients_that_are_cleared():
    def body(model, optimizer):
        optimizer.zero_grad()
        loss = loss_of(model)
        optimizer.step()
        loss.backward()

    for steps in (1, 3):
        [finding] = audited(body, steps).findings.itertuples()
        assert (finding.rule, finding.severity) == ("cleared_gradient", "warning")
        assert finding.message.startswith("The optimizer steps before the backward pass that computes gradients of all")
        assert finding.advice == "Call them in this order: zero_grad(), backward(), optimizer.step()."


def test_the_clipping_that_loses_an_update_is_named():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbkit.opaudit() as trace:
        model(batch()).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-9)
        optimizer.step()
    [finding] = trace.findings.itertuples()
    assert finding.rule == "lost_update"
    assert "; clip_grad_norm_ clips them from a norm of " in finding.message
    assert finding.message.endswith("`nn.utils.clip_grad_norm_(model.parameters(), 1e-9)`")
    assert finding.advice.startswith("Clip to a larger norm")


def test_a_model_of_its_own_optimizer_that_is_cut_off_is_a_hint():
    encoder, decoder = mlp(8, 8), mlp(8, 2)
    optimizers = [torch.optim.Adam(model.parameters()) for model in (encoder, decoder)]
    with nbkit.opaudit() as trace:
        for _ in range(2):
            z = encoder(batch()).detach()
            decoder(z).square().mean().backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
    [finding] = trace.findings.itertuples()
    assert (finding.rule, finding.severity) == ("no_gradient", "hint")
    assert finding.source_text == "z = encoder(batch()).detach()"


class IntoCopies(torch.optim.SGD):
    """Writes what it computes into a contiguous copy: a weight with other strides stays as it was."""

    @torch.no_grad()
    def step(self):
        for weight in self.param_groups[0]["params"]:
            weight.contiguous().sub_(self.param_groups[0]["lr"] * weight.grad)


@pytest.mark.parametrize("gradient", [1.0, 1e-9])
def test_a_weight_that_stays_while_others_move_is_told_unless_its_gradient_is_far_smaller(gradient):
    model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 2))
    model[0].weight = nn.Parameter(torch.randn(8, 16).t())
    model[0].weight.register_hook(lambda grad: grad * gradient)
    optimizer = IntoCopies(model.parameters(), lr=1e-2)
    with nbkit.opaudit() as trace:
        for _ in range(2):
            trained_on(loss_of)(model, optimizer)
    told = trace.findings[trace.findings["rule"] == "lost_update"]
    assert told["parameter"].tolist() == (["0.weight"] if gradient == 1 else [])
    if gradient == 1:
        message = "The optimizer changes no element of 0.weight though its gradient is not 0"
        assert told["message"].tolist() == [message]
        assert "not contiguous" in told["advice"].item()
