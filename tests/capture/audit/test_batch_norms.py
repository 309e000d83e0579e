"""Batch norm whose statistics do not move: what is named, and right uses that are not."""

import json

import pytest
import torch
from torch import nn

from tests.capture.audit.right.shared import trains
from tests.capture.audit.test_wrong_cases import audited


def net(**options):
    return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, **options), nn.Tanh(), nn.Linear(8, 8), nn.BatchNorm1d(8))


def found(model, step=None):
    step = step or trains(model, torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1))
    return list(audited(step).findings.itertuples())


def test_a_momentum_of_0_is_a_hint():
    [finding] = found(net(momentum=0.0))
    assert (finding.rule, finding.severity, finding.module) == ("static_statistics", "hint", "1")
    assert finding.message == (
        "Batch norm 1 of Sequential normalizes with the statistics of the batch, but with a momentum of 0 its running "
        "statistics do not move"
    )


def test_a_momentum_of_another_framework_is_a_hint():
    [finding] = found(net(momentum=0.99))
    assert (finding.rule, finding.severity, finding.module) == ("forgetful_statistics", "hint", "1")
    assert finding.message == (
        "Batch norm 1 of Sequential has momentum=0.99, which in torch is the share of the new batch: the running "
        "statistics keep 0.01 of what they were, and eval mode normalizes with those of the last batch"
    )
    assert "write momentum=0.01." in finding.advice


def test_layers_in_eval_mode_whose_weights_train_are_a_hint():
    model = net()
    model[1].eval()
    model[4].eval()
    [finding] = found(model)
    assert (finding.rule, finding.severity, finding.count) == ("batch_norm_in_eval", "hint", 2)
    assert finding.message == (
        "2 batch norm layers (1, 4) of Sequential are in eval mode while Sequential trains: their weights are "
        "trained, the running statistics do not move"
    )
    assert json.loads(finding.evidence)["modules"] == ["1", "4"]


def frozen(**options):
    model = net(**options)
    for layer in (model[1], model[4]):
        layer.eval().requires_grad_(False)
    return model


def evaluated():
    model = net().eval()
    return model, lambda _: model(torch.randn(4, 8)).sum().backward()


RIGHT = {
    "training": net,
    "frozen": frozen,
    "a small momentum": lambda: net(momentum=0.01),
    "a large momentum": lambda: net(momentum=0.8),
    "the last batch alone": lambda: net(momentum=1.0),
    "a momentum without statistics": lambda: net(momentum=0.99, track_running_stats=False),
    "a momentum that is not used": lambda: nn.Sequential(frozen(momentum=0.99), nn.Linear(8, 8)),
    "a mean of all": lambda: net(momentum=None),
    "without statistics": lambda: net(track_running_stats=False),
    "without weights": lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, affine=False).eval()),
    "instance norm": lambda: nn.Sequential(
        nn.Unflatten(1, (2, 4)), nn.InstanceNorm1d(2), nn.Flatten(), nn.Linear(8, 1)
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_right_norms_are_not_named(case):
    assert found(RIGHT[case]()) == []


def test_statistics_that_no_optimizer_trains_with_are_right():
    model = net(momentum=0.99)
    assert found(model, lambda _: model(torch.randn(4, 8))) == []


def test_evaluation_is_right():
    assert found(*evaluated()) == []


def frozen_part(*, is_eval):
    part = net()
    part.requires_grad_(False)
    model = nn.Sequential(part, nn.Linear(8, 8))
    if is_eval:
        part.eval()
    return model


def test_statistics_of_frozen_layers_that_move_are_a_hint():
    [finding] = [one for one in found(frozen_part(is_eval=False)) if one.rule == "moving_statistics"]
    assert finding.severity == "hint" and json.loads(finding.evidence)["modules"] == ["0.1", "0.4"]
    assert finding.message == (
        "2 batch norm layers (0.1, 0.4) of Sequential are frozen (requires_grad=False) but in training mode: their "
        "running statistics move with each batch, and eval mode gives other results than before"
    )


def test_frozen_layers_in_eval_mode_and_trained_ones_are_right():
    assert not [one for one in found(frozen_part(is_eval=True)) if one.rule == "moving_statistics"]
    assert not [one for one in found(net()) if one.rule == "moving_statistics"]
