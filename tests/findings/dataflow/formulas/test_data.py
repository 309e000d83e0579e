"""Pixels that are scaled twice, pairs that are parted: what is named, and right steps."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.dataflow.steps import found

BYTES, LABELS = torch.randint(0, 256, (12, 3, 6, 6), dtype=torch.uint8), torch.randint(0, 4, (12,))
NET = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(64, 4))


def train(images, labels=LABELS):
    F.cross_entropy(NET(images), labels).backward()


TWICE = {
    "divided": lambda: train(BYTES.float() / 255 / 255.0),
    "multiplied": lambda: train((BYTES.float() * (1 / 255)).mul_(1 / 255)),
    "of a part": lambda: train((BYTES / 255)[:8].permute(0, 1, 3, 2).contiguous().div(255), LABELS[:8]),
    "stacked": lambda: train(torch.stack([one / 255 for one in BYTES]) / 255),
}


@pytest.mark.parametrize("case", TWICE)
def test_pixels_that_are_scaled_twice_are_named(case):
    [finding] = found(TWICE[case])
    assert (finding.rule, finding.severity) == ("scaled_twice", "warning")
    assert "end between 0 and 0.0039" in finding.message


ONCE = {
    "once": lambda: train(BYTES / 255),
    "back and again": lambda: train((BYTES / 255 * 255).round() / 255),
    "and normalized": lambda: train((BYTES / 255 - 0.45) / 0.22),
    "two images": lambda: train((BYTES / 255 + BYTES.flip(0) / 255) / 2),
    "another number": lambda: train(BYTES / 255 / 2),
}


@pytest.mark.parametrize("case", ONCE)
def test_pixels_that_are_scaled_once_are_right(case):
    assert found(ONCE[case]) == []


X, Y = torch.rand(12, 3, 6, 6), torch.rand(12, 4)


def order():
    return torch.randperm(12)


def mixed(other, of):
    F.mse_loss(NET(0.7 * X + 0.3 * X[other]), 0.7 * Y + 0.3 * Y[of]).backward()


PARTED = {
    "shuffled": lambda: train(X[order()], LABELS[order()]),
    "mixed": lambda: mixed(order(), order()),
    "selected": lambda: train(X.index_select(0, order()), LABELS.index_select(0, order())),
}


@pytest.mark.parametrize("case", PARTED)
def test_pairs_that_are_parted_are_named(case):
    [finding] = found(PARTED[case])
    assert (finding.rule, finding.severity) == ("parted_pairs", "warning")
    assert "are in an order that randperm(12) drew" in finding.message


def together(change=lambda x: x):
    rows = order()
    train(change(X[rows]), LABELS[rows])


def of_batches():
    rows = order()
    for at in (0, 6):
        train(X[rows[at : at + 6]], LABELS[rows[at : at + 6]])


def matched():
    """Says whether image and label belong together: half of them are shuffled."""
    for rows, is_pair in ((torch.arange(12), 1.0), (order(), 0.0)):
        scores = (NET(X) * F.one_hot(LABELS[rows], 4)).sum(1)
        F.binary_cross_entropy_with_logits(scores, torch.full((12,), is_pair)).backward()


def consistent():
    """Two views in their own orders, brought back before they are compared."""
    first, second = order(), order()
    one, other = (NET(X[rows])[rows.argsort()] for rows in (first, second))
    F.mse_loss(one, other.detach()).backward()


PAIRED = {
    "one order": together,
    "mixed": lambda: (lambda rows: mixed(rows, rows))(order()),
    "batches of one order": of_batches,
    "noise beside": lambda: together(lambda x: 0.9 * x + 0.1 * x[order()]),
    "shuffled labels alone": lambda: train(X, LABELS[order()]),
    "pairs and others": matched,
    "channels": lambda: together(lambda x: x[:, torch.randperm(3)]),
}


@pytest.mark.parametrize("case", PAIRED)
def test_pairs_are_right(case):
    assert found(PAIRED[case]) == []
