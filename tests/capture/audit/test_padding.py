"""Padding that counts as text, and a blank among labels: what is named, and right batches."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

N, T, D = 6, 9, 8
LENGTHS = torch.tensor([9, 4, 6, 2, 7, 5])
IS_PADDING = torch.arange(T) >= LENGTHS[:, None]
IDS = torch.randint(1, 30, (N, T)).masked_fill(IS_PADDING, 0)


class Texts(nn.Module):
    def __init__(self, mix, take, is_zero=True):
        super().__init__()
        self.table, self.head = nn.Embedding(30, D, padding_idx=0), nn.Linear(D, 3)
        self.mix, self.take = mix, take
        if not is_zero:
            nn.init.normal_(self.table.weight)

    def forward(self, ids):
        hidden = self.table(ids)
        hidden = hidden if self.mix is None else self.mix(hidden)
        return self.head(self.take(hidden[0] if isinstance(hidden, tuple) else hidden))


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(D, 2, 16, 0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x, src_key_padding_mask=IS_PADDING)


def rules(model, ids=IDS):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbkit.opaudit() as trace:
        F.cross_entropy(model(ids), torch.arange(N) % 3).backward()
        optimizer.step()
    rows = trace.findings[trace.findings["rule"] == "counted_padding"]
    return rows["message"].tolist()


def recurrent(kind, take, **options):
    return Texts(kind(D, D, batch_first=True, **options), take)


def last(states):
    return states[:, -1]


def mean(hidden):
    return hidden.mean(1)


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
def test_a_last_state_of_padding_is_a_hint(kind):
    assert rules(recurrent(kind, last)) == [
        "the last position of a recurrence is read, and 5 of 6 texts end with padding: its state has read that, too"
    ]


@pytest.mark.parametrize("mix", [None, Masked])
def test_a_mean_over_padding_is_a_hint(mix):
    model = Texts(None if mix is None else mix(), mean)
    assert rules(model) == ["the mean over positions counts padding: 21 of 54 tokens of the batch are padding"]


def test_a_row_of_padding_that_is_not_0_is_a_hint():
    found = rules(Texts(None, lambda hidden: hidden.sum(1), is_zero=False))
    assert found == ["the sum adds the row of the padding, which is not 0: 21 of 54 tokens of the batch are padding"]


def at_lengths(states):
    return states[torch.arange(N), LENGTHS - 1]


def masked_mean(hidden):
    return (hidden * ~IS_PADDING[..., None]).sum(1) / LENGTHS[:, None]


RIGHT = {
    "at the lengths": lambda: rules(recurrent(nn.GRU, at_lengths)),
    "padding before": lambda: rules(recurrent(nn.GRU, last), IDS.flip(1)),
    "no padding": lambda: rules(recurrent(nn.LSTM, last), IDS.clamp(min=1)),
    "the first position": lambda: rules(Texts(Masked(), lambda hidden: hidden[:, 0])),
    "a masked mean": lambda: rules(Texts(Masked(), masked_mean)),
    "a mean of what is masked": lambda: rules(Texts(Masked(), lambda x: mean(x * ~IS_PADDING[..., None]))),
    "a sum of zeros": lambda: rules(Texts(None, lambda hidden: hidden.sum(1))),
    "a sum over features": lambda: rules(
        Texts(None, lambda hidden: hidden.mean(2, keepdim=True).expand(N, T, D)[:, 0])
    ),
    "the largest": lambda: rules(Texts(None, lambda hidden: hidden.amax(1), is_zero=False)),
}


@pytest.mark.parametrize("case", RIGHT)
def test_texts_without_their_padding_are_right(case):
    assert RIGHT[case]() == []


def aligned(labels, blank=0, sizes=(2, 3)):
    model = nn.Linear(4, 6)
    with nbkit.opaudit() as trace:
        scores = model(torch.randn(9, 2, 4)).log_softmax(-1)
        F.ctc_loss(scores, labels, torch.tensor([9, 9]), torch.tensor(sizes), blank=blank).backward()
    rows = trace.findings[trace.findings["rule"] == "blank_label"]
    return rows[["severity", "message"]].to_numpy().tolist()


@pytest.mark.parametrize(
    ("labels", "blank", "count"),
    [
        (torch.tensor([[1, 0, 0], [2, 3, 4]]), 0, 1),
        (torch.tensor([1, 2, 0, 0, 3]), 0, 2),
        (torch.tensor([[1, 5, 2], [2, 3, 4]]), 5, 1),
    ],
)
def test_a_label_that_is_the_blank_is_named(labels, blank, count):
    [(severity, message)] = aligned(labels, blank)
    assert severity == "warning"
    assert message.startswith(f"{count} of 5 labels of ctc_loss are {blank}, which is its blank")


@pytest.mark.parametrize(
    ("labels", "blank"),
    [
        (torch.tensor([[1, 2, 0], [2, 3, 4]]), 0),  # padding behind the label
        (torch.tensor([1, 2, 3, 4, 5]), 0),
        (torch.tensor([0, 1, 2, 0, 4]), 5),
    ],
)
def test_labels_without_the_blank_are_right(labels, blank):
    assert aligned(labels, blank) == []
