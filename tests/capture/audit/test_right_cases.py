"""Tests that no rule of opaudit calls a right training step wrong, whichever step is recorded."""

import pytest
import torch

import nbkit
from nbkit.findings.finding import wrong
from tests.capture.audit.right import CASES

HINTS = {
    "unused_head": {"no_gradient"},
    "target_network": {"no_gradient"},
    "distances": {"zero_gradient"},
    "critic_more_often": {"zero_gradient"},  # the bias of the critic cancels
    "lora": {"zero_gradient"},
    "branches_from_zero": {"zero_gradient"},
    "gradient_accumulation_over_calls": {"accumulated_gradient"},
    "scaled": {"skipped_step"},
    "optimised_input": {"not_in_optimizer"},
    "new_head": {"not_in_optimizer"},
    "dropout_and_frozen_norm": {"batch_norm_in_eval"},
    "frozen_weights": {"frozen_parameter"},
}


@pytest.mark.parametrize(("begin", "count"), [(0, 4), (3, 1)], ids=["first steps", "a later step alone"])
@pytest.mark.parametrize("name", CASES)
def test_a_right_step_is_not_called_wrong(name, begin, count):
    torch.manual_seed(0)
    step = CASES[name]()
    for i in range(begin):
        step(i)
    with nbkit.opaudit() as trace:
        for i in range(begin, begin + count):
            step(i)
    assert wrong(trace.findings)["message"].tolist() == []
    assert set(trace.findings["rule"]) <= HINTS.get(name, set())
    assert not [reason for reason in trace.meta["skipped"] if "audited" in reason or "looked at" in reason]
