"""Averages of weights, noise of an autoencoder: what is named, and right steps."""

import copy

import pytest
import torch
from torch import nn

from tests.findings.dataflow.steps import found


def averaged(update, steps=4):
    """Trains a model, and updates an average of its weights after each step."""
    torch.manual_seed(0)
    net = nn.Linear(5, 4)
    average, optimizer = copy.deepcopy(net).requires_grad_(False), torch.optim.SGD(net.parameters(), 0.1)

    def step():
        for number in range(steps):
            optimizer.zero_grad()
            net(torch.ones(3, 5)).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                for kept, weight in zip(average.parameters(), net.parameters(), strict=True):
                    update(kept, weight, number)

    return step


AWAY = {
    "added": lambda kept, weight, _: kept.add_((kept - weight) * 0.1),
    "subtracted": lambda kept, weight, _: kept.sub_(0.01 * (weight - kept)),
    "lerp": lambda kept, weight, _: kept.lerp_(weight, -0.01),
    "copied": lambda kept, weight, _: kept.copy_(1.01 * kept - 0.01 * weight),
}


@pytest.mark.parametrize("case", AWAY)
def test_an_average_that_moves_away_is_named(case):
    [finding] = found(averaged(AWAY[case]))
    assert (finding.rule, finding.severity) == ("reversed_average", "warning")
    assert "it moves away from them" in finding.message


LAST = {
    "mul and add": lambda kept, weight, _: kept.mul_(0.001).add_(weight, alpha=0.999),
    "lerp": lambda kept, weight, _: kept.lerp_(weight, 0.99),
    "copied": lambda kept, weight, _: kept.copy_((1 - 0.995) * kept + 0.995 * weight),
}


@pytest.mark.parametrize("case", LAST)
def test_an_average_of_the_last_step_is_named(case):
    [finding] = found(averaged(LAST[case]))
    assert finding.rule == "reversed_average"
    assert "it is what the last step left" in finding.message


RIGHT = {
    "mul and add": lambda kept, weight, _: kept.mul_(0.999).add_(weight, alpha=0.001),
    "lerp": lambda kept, weight, _: kept.lerp_(weight, 0.01),
    "added": lambda kept, weight, _: kept.add_((weight - kept) * 0.1),
    "subtracted": lambda kept, weight, _: kept.sub_(0.1 * (kept - weight)),
    "a warm-up": lambda kept, weight, number: kept.lerp_(weight, 1 - min(0.99, (1 + number) / (10 + number))),
    "a running mean": lambda kept, weight, number: kept.lerp_(weight, 1 / (number + 1)),
    "a copy": lambda kept, weight, _: kept.copy_(weight),
    "half": lambda kept, weight, _: kept.mul_(0.5).add_(weight, alpha=0.5),
    "extrapolated into another": lambda kept, weight, _: (2 * weight - kept).sum(),
}


@pytest.mark.parametrize("case", RIGHT)
def test_an_average_is_right(case):
    assert found(averaged(RIGHT[case])) == []


ENCODER, DECODER, X = nn.Linear(6, 8), nn.Linear(4, 6), torch.randn(9, 6)


def autoencoder(deviation, divergence):
    mean, raw = ENCODER(X).chunk(2, -1)
    z = mean + deviation(raw) * torch.randn_like(mean)
    ((DECODER(z) - X).square().mean() + 0.1 * divergence(mean, raw).sum(-1).mean()).backward()


def of_log_variance(mean, raw):
    return -0.5 * (1 + raw - mean.pow(2) - raw.exp())


VARIANCES = {
    "exp": lambda: autoencoder(torch.exp, of_log_variance),
    "written otherwise": lambda: autoencoder(
        torch.exp, lambda mean, raw: 0.5 * (mean * mean + torch.exp(raw) - 1 - raw)
    ),
    "expanded": lambda: autoencoder(lambda raw: raw.exp().expand(9, 4), of_log_variance),
}


@pytest.mark.parametrize("case", VARIANCES)
def test_a_variance_that_scales_noise_is_named(case):
    [finding] = found(VARIANCES[case])
    assert (finding.rule, finding.severity) == ("variance_as_deviation", "warning")
    assert "noise is scaled by the deviation" in finding.message


DEVIATIONS = {
    "half": lambda: autoencoder(lambda raw: (0.5 * raw).exp(), of_log_variance),
    "root": lambda: autoencoder(lambda raw: raw.exp().sqrt(), of_log_variance),
    "log of the deviation": lambda: autoencoder(
        torch.exp, lambda mean, raw: 0.5 * (mean.pow(2) + (2 * raw).exp() - 1) - raw
    ),
    "squared": lambda: autoencoder(torch.exp, lambda mean, raw: 0.5 * (mean.pow(2) + raw.exp().pow(2) - 1) - raw),
    "no divergence": lambda: autoencoder(torch.exp, lambda mean, raw: mean.pow(2)),
    "another": lambda: autoencoder(lambda raw: nn.functional.softplus(raw), of_log_variance),
}


@pytest.mark.parametrize("case", DEVIATIONS)
def test_a_deviation_is_right(case):
    assert found(DEVIATIONS[case]) == []
