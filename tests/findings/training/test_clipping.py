"""When gradients are clipped: after the step, between the backward passes of one, or as they should be."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

X, Y = torch.linspace(-2, 2, 64).view(8, 8), torch.arange(8) % 3
RULES = ("late_clipping", "partial_clipping")


def found(order, most=0.01, steps=3):
    """What is found of steps that each do what `order` names: f(orward and backward), c(lip), s(tep), z(ero)."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    todo = {
        "f": lambda: F.cross_entropy(model(X), Y).backward(),
        "c": lambda: nn.utils.clip_grad_norm_(model.parameters(), most),
        "s": optimizer.step,
        "z": optimizer.zero_grad,
        "Z": lambda: optimizer.zero_grad(set_to_none=False),
    }
    with nbkit.opaudit() as trace:
        for _ in range(steps):
            for name in order:
                todo[name]()
    return [*trace.findings[trace.findings["rule"].isin(RULES)].itertuples()]


@pytest.mark.parametrize("order", ["zfsc", "Zfsc", "fscz", "zffsc"])
def test_clipping_after_the_step_is_a_warning_with_its_line(order):
    (finding,) = found(order)
    assert (finding.rule, finding.severity, finding.count) == ("late_clipping", "warning", 3)
    assert finding.source_text == '"c": lambda: nn.utils.clip_grad_norm_(model.parameters(), most),'
    norms = json.loads(finding.evidence)["norms"]
    assert finding.message == (
        "clip_grad_norm_ runs after the step of AdamW, which has read the gradients before: it clips them from a norm "
        f"of up to {max(norms):.3g} to 0.01 at 3 steps, and no step uses that"
    )


@pytest.mark.parametrize("order", ["zfcfcs", "zfcfcfcfcs"])
def test_clipping_between_passes_that_add_up_is_a_hint(order):
    (finding,) = found(order)
    assert (finding.rule, finding.severity) == ("partial_clipping", "hint")
    assert finding.source_text.startswith('"c": lambda')
    times = order.count("c")
    assert finding.message.startswith(f"clip_grad_norm_ runs {times} times for one step of AdamW, each time after a ")
    assert finding.count == 3 * times


RIGHT = {
    "before the step": {"order": "zfcs"},
    "once for several passes": {"order": "zfffcs"},
    "a norm that is measured alone": {"order": "zfsc", "most": float("inf")},
    "a norm that is never reached": {"order": "zfcfcs", "most": 1e3},
    "before and after the step": {"order": "zfcsc", "most": 1e-9},
    "passes that do not add up": {"order": "fczfczfcs"},
    "passes that do not add up, with zeros": {"order": "fcZfcZfcs"},
    "twice after one pass": {"order": "zfccs"},
    "gradients of the step before, on purpose": {"order": "fsc"},
}


@pytest.mark.parametrize("name", RIGHT)
def test_of_clipping_that_the_step_uses_nothing_is_said(name):
    assert [one.rule for one in found(**RIGHT[name])] == []


def test_two_optimizers_that_take_turns_clip_each_their_own():
    torch.manual_seed(0)
    models = [nn.Linear(8, 3), nn.Linear(8, 3)]
    optimizers = [torch.optim.Adam(model.parameters(), 1e-3) for model in models]
    with nbkit.opaudit() as trace:
        for _ in range(3):
            for model, optimizer in zip(models, optimizers, strict=True):
                optimizer.zero_grad()
                F.cross_entropy(sum(one(X) for one in models), Y).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                optimizer.step()
    assert not trace.findings["rule"].isin(RULES).any()


def test_gradients_that_backward_did_not_set_are_clipped_before_each_step():
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbkit.opaudit() as trace:
        for _ in range(3):
            made = torch.autograd.grad(F.cross_entropy(model(X), Y), [*model.parameters()])
            for parameter, gradient in zip(model.parameters(), made, strict=True):
                parameter.grad = gradient
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
    assert not trace.findings["rule"].isin(RULES).any()
