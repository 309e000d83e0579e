"""Recurrences and attention over the samples of a batch: what is named, and right steps."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.dataflow.steps import found

N, T, D = 12, 7, 8
IDS, LABELS = torch.randint(0, 20, (N, T)), torch.randint(0, 3, (N,))
TABLE, HEAD = nn.Embedding(20, D), nn.Linear(D, 3)


def train(mix, ids=IDS, labels=LABELS, take=lambda x: x[:, -1]):
    F.cross_entropy(HEAD(take(mix(TABLE(ids)))), labels).backward()


LSTM, FIRST = nn.LSTM(D, D), nn.LSTM(D, D, batch_first=True)
MHA, MHA_FIRST = nn.MultiheadAttention(D, 2), nn.MultiheadAttention(D, 2, batch_first=True)
LAYER, LAYER_FIRST = (nn.TransformerEncoderLayer(D, 2, 16, batch_first=first) for first in (False, True))
MIXED = {
    "a recurrence": lambda: train(lambda x: LSTM(x)[0]),
    "attention": lambda: train(lambda x: MHA(x, x, x)[0]),
    "attention without weights": lambda: train(lambda x: MHA(x, x, x, need_weights=False)[0]),
    "a layer": lambda: train(LAYER, take=lambda x: x.mean(1)),
}


@pytest.mark.parametrize("case", MIXED)
def test_samples_taken_for_positions_are_named(case):
    [finding] = found(MIXED[case])
    assert (finding.rule, finding.severity) == ("mixed_samples", "warning")
    assert "the loss has 12 labels, one for each of its 12 rows" in finding.message


def one_sentence():
    """Tags the tokens of one sentence: positions are the rows of the loss."""
    F.cross_entropy(HEAD(LSTM(TABLE(IDS[:, :1]))[0][:, 0]), LABELS).backward()


def over_time():
    """Frames of two clips, seen by themselves and then along time."""
    frames = TABLE(IDS).view(2, 6, T, D).permute(2, 0, 1, 3).flatten(0, 1)
    seen = LAYER_FIRST(frames).view(T, 2, 6, D).permute(1, 2, 0, 3).reshape(N, T, D)
    F.cross_entropy(HEAD(seen.mean(1)), LABELS).backward()


def square(mix, take):
    train(mix, torch.randint(0, 20, (T, N)), take=take)


APART = {
    "batch first": lambda: train(lambda x: FIRST(x)[0]),
    "turned before": lambda: train(lambda x: LSTM(x.transpose(0, 1))[0], take=lambda x: x[-1]),
    "positions first": lambda: square(lambda x: LSTM(x)[0], lambda x: x[-1]),
    "attention, batch first": lambda: train(lambda x: MHA_FIRST(x, x, x)[0]),
    "attention, positions first": lambda: square(lambda x: MHA(x, x, x)[0], lambda x: x.mean(0)),
    "as many positions as samples": lambda: train(LAYER_FIRST, torch.randint(0, 20, (N, N)), take=lambda x: x.mean(1)),
    "a layer, batch first": lambda: train(LAYER_FIRST, take=lambda x: x.mean(1)),
    "one sentence": one_sentence,
    "along time": over_time,
    "a label each": lambda: F.cross_entropy(HEAD(LSTM(TABLE(IDS))[0]).flatten(0, 1), IDS.flatten() % 3).backward(),
}


@pytest.mark.parametrize("case", APART)
def test_samples_by_themselves_are_right(case):
    assert found(APART[case]) == []
