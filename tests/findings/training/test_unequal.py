"""Micro-batches of which as many tokens count as the others have, or not: what is said of means over them."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

IDS = torch.arange(16 * 13).reshape(16, 13) * 7 % 30
SHORT, ALIKE = [12] * 4 + [3] * 4 + [6] * 4 + [12] * 4, [12, 3, 6, 9] * 4


def mean(scores, labels, whole):
    return F.cross_entropy(scores, labels) / 4


def found(loss=mean, lengths=SHORT, clears=lambda number: False, optimizers=1, ignored=-100):
    """What is found of two steps of four passes each; `loss` is given scores, labels, and all that count in a step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30))
    made = [torch.optim.AdamW(layer.parameters(), 1e-3) for layer in (model if optimizers == 2 else [model])]
    labels = IDS[:, 1:].masked_fill(torch.arange(12) >= torch.tensor(lengths)[:, None], ignored)
    with nbkit.opaudit() as trace:
        for _ in range(2):
            for number, (ids, of) in enumerate(zip(IDS.split(4), labels.split(4), strict=True)):
                loss(model(ids[:, :-1]).flatten(0, 1), of.flatten(), (labels != ignored).sum()).backward()
                if clears(number):
                    model.zero_grad()
            for optimizer in made:
                optimizer.step()
                optimizer.zero_grad()
    return [*trace.findings[trace.findings["rule"] == "unequal_means"].itertuples()]


SCALE = torch.tensor(1024.0)


def scaled(scores, labels, whole):
    return F.cross_entropy(scores, labels) * SCALE


@pytest.mark.parametrize("loss", [mean, scaled])
def test_means_over_numbers_of_tokens_that_differ_are_a_hint(loss):
    (finding,) = found(loss)
    assert finding.severity == "hint"
    assert finding.source_text.startswith("return F.cross_entropy(scores, labels)")
    assert json.loads(finding.evidence)["tokens"] == [48, 12, 24, 48]
    assert finding.message == (
        "4 backward passes add up to a step of AdamW, weighed alike, and each begins at a mean over its own tokens, "
        "12 to 48 of them: a token counts 4 times as much in one pass as in another"
    )


def by_tokens(scores, labels, whole):
    return F.cross_entropy(scores, labels) * ((labels != -100).sum() / whole)


def by_number(scores, labels, whole):
    return F.cross_entropy(scores, labels) * (int((labels != -100).sum()) / int(whole))


def summed(scores, labels, whole):
    return F.cross_entropy(scores, labels, reduction="sum") / whole


def of_each(scores, labels, whole):
    return F.cross_entropy(scores, labels, reduction="none").sum() / whole


RIGHT = {
    "sums over all": {"loss": summed},
    "sums of each": {"loss": of_each},
    "weighed by tokens": {"loss": by_tokens},
    "weighed by a number": {"loss": by_number},
    "as many in each": {"lengths": ALIKE},
    "no more than a sixth apart": {"lengths": [12] * 12 + [11] * 4},
    "passes that do not add up": {"clears": lambda number: number < 3},
    "two optimizers": {"optimizers": 2},
    "all tokens count": {"ignored": 29, "loss": lambda scores, labels, whole: F.cross_entropy(scores, labels) / 4},
}


@pytest.mark.parametrize("name", RIGHT)
def test_of_means_that_weigh_each_token_alike_nothing_is_said(name):
    assert found(**RIGHT[name]) == []
