"""Weight decay that some norms and biases are kept from, and others are not."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit


def found(is_free):
    """What is found where `is_free` says of a parameter's name and itself that it is not decayed."""
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 4))
    free = [one for name, one in model.named_parameters() if is_free(name, one)]
    others = [one for name, one in model.named_parameters() if not is_free(name, one)]
    groups = [{"params": others, "weight_decay": 0.1}, {"params": free, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], 1e-3)
    with nbkit.opaudit() as trace:
        F.cross_entropy(model(torch.randn(8, 8)), torch.arange(8) % 4).backward()
        optimizer.step()
    return [*trace.findings[trace.findings["rule"] == "decayed_norm"].itertuples()]


def test_a_norm_that_its_name_leaves_among_the_decayed_is_a_hint():
    (finding,) = found(lambda name, _: name.endswith("bias") or "LayerNorm" in name)
    assert (finding.severity, finding.parameter) == ("hint", "1.weight")
    assert json.loads(finding.evidence)["free"] == ["0.bias", "1.bias", "3.bias"]
    assert finding.message == (
        "1.weight is decayed by 0.1, though 3 other norms and biases of Sequential are kept from weight decay"
    )


@pytest.mark.parametrize(
    "is_free",
    [lambda _, one: one.dim() < 2, lambda *_: False, lambda *_: True, lambda name, _: name == "3.weight"],
    ids=["by shape", "all decayed", "none decayed", "a matrix"],
)
def test_groups_that_treat_them_alike_are_right(is_free):
    assert found(is_free) == []
