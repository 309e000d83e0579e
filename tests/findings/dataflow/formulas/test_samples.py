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


ROWS, BATCH_FIRST = torch.randn(40, 1, D), nn.TransformerEncoderLayer(D, 2, 16, batch_first=True)


class Numbered(nn.Module):
    def __init__(self, table, rows):
        super().__init__()
        self.rows = rows
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.rows(self.table, x)


OF_BATCH, OF_SECOND = (
    Numbered(ROWS, lambda table, x: table[: x.shape[0]]),
    Numbered(ROWS.transpose(0, 1), lambda table, x: table[:, : x.shape[1]]),
)
EACH, ALL = Numbered(ROWS[:N].clone(), lambda table, x: table), Numbered(ROWS, lambda table, x: table[0])


def numbered(positions, layer=BATCH_FIRST, ids=IDS):
    layer(positions(TABLE(ids))).mean().backward()


def test_positions_that_go_to_samples_are_named():
    [finding] = found(lambda: numbered(OF_BATCH))
    assert (finding.rule, finding.severity) == ("numbered_samples", "warning")
    assert "12 rows of the table [40, 1, 8] are added to [12, 7, 8] along dimension 0" in finding.message


NUMBERED = {
    "positions": lambda: numbered(OF_SECOND),
    "positions first": lambda: numbered(OF_BATCH, LAYER, IDS.T),
    "as many as samples": lambda: numbered(OF_BATCH, ids=IDS[:T]),
    "no attention": lambda: numbered(OF_BATCH, HEAD),
    "a row for each sample": lambda: numbered(EACH),
    "one for all": lambda: numbered(ALL),
}


@pytest.mark.parametrize("case", NUMBERED)
def test_positions_of_each_sample_are_right(case):
    assert [one for one in found(NUMBERED[case]) if one.rule == "numbered_samples"] == []
