"""Wrong signs, heads that a view scrambles, caches that grow, products outside of autocast, lone rows."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nbkit.findings.dataflow.rules import dataflow_findings
from nbkit.schema import TENSORS
from tests.findings.dataflow.test_rules import found
from tests.support.fakes import make_ops

X, Y = torch.randn(16, 4), torch.arange(16) % 4
NET = nn.Linear(4, 4)
BATCH, HEADS = torch.randn(3, 6, 4), torch.randn(3, 2, 5, 4)


class Heads(nn.Module):
    def __init__(self, split):
        super().__init__()
        self.qkv, self.split = nn.Linear(8, 24), split

    def forward(self, x):
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v)


class Pair(nn.Module):
    """Adds features of one part of a batch to those of the other."""

    def __init__(self, of_text):
        super().__init__()
        self.words, self.image, self.of_text = nn.Embedding(9, 4), nn.Linear(4, 4), of_text
        self.register_buffer("ids", torch.arange(6)[None])
        self.start = nn.Parameter(torch.zeros(1, 4))

    def forward(self, ids, x):
        return self.image(x) + self.of_text(self, ids)


class Island(nn.Linear):
    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return super().forward(x.float())


class Cast(nn.Linear):
    def forward(self, x):
        return F.linear(x.bfloat16(), self.weight.bfloat16(), self.bias.bfloat16()).float()


def attended(split):
    return lambda: Heads(split)(torch.randn(2, 6, 8)).sum().backward()


def grown(times, cat):
    def step():
        cache = torch.zeros(2, 8)
        for _ in range(times):
            cache = cat(cache)
        return cache

    return step


def paired(of_text, ids):
    return lambda: Pair(of_text)(ids, X).sum().backward()


def autocast(*layers):
    model = nn.Sequential(*layers)

    def step():
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(X).float().sum()
        loss.backward()

    return step


BY_HAND = nn.Sequential(Cast(4, 4), nn.Linear(4, 4), Cast(4, 4))
ONE_TEXT, TEXTS = torch.zeros(1, 6, dtype=torch.long), torch.zeros(16, 6, dtype=torch.long)
WRONG = {
    "minus cross_entropy": (lambda: (-F.cross_entropy(NET(X), Y)).backward(), "negated_loss", "hint"),
    "minus one times mse_loss": (lambda: (F.mse_loss(NET(X), X) * -1.0).backward(), "negated_loss", "hint"),
    "a view into heads": (attended(lambda x: x.reshape(2, 4, 6, 2)), "scrambled_view", "warning"),
    "a cache by cat": (grown(40, lambda x: torch.cat((x, x[:1]))), "growing_cat", "hint"),
    "one text": (paired(lambda self, ids: self.words(ids).mean(1), ONE_TEXT), "lone_row", "hint"),
    "a view for a transpose": (lambda: NET(BATCH).view(3, 4, 6).sum().backward(), "swapped_sizes", "warning"),
    "heads merged by a view": (lambda: (NET(HEADS) * 2).reshape(3, 5, 8).sum(), "swapped_sizes", "warning"),
    "an island": (autocast(nn.Linear(4, 4), Island(4, 4), nn.Linear(4, 4)), "outside_autocast", "hint"),
}
RIGHT = {
    "a loss": lambda: F.cross_entropy(NET(X), Y).backward(),
    "a bonus in the loss": lambda: (F.mse_loss(NET(X), X) - NET(X).square().mean()).backward(),
    "a likelihood": lambda: (-NET(X).log_softmax(1)[:, 0].mean()).backward(),
    "view and transpose": attended(lambda x: x.reshape(2, 6, 4, 2).transpose(1, 2)),
    "as many heads as positions": attended(lambda x: x.reshape(2, 6, 2, 4).permute(0, 2, 1, 3)),
    "one cat of many": lambda: torch.cat([X] * 64),
    "few cats": grown(20, lambda x: torch.cat((x, x[:1]))),
    "a cache of the same size": grown(64, lambda x: torch.cat((x[1:], x[:1])) * 1),
    "as many texts": paired(lambda self, ids: self.words(ids).mean(1), TEXTS),
    "positions of a buffer": paired(lambda self, ids: self.words(self.ids).mean(1), TEXTS),
    "positions that are counted": paired(lambda self, ids: self.words(torch.arange(6)[None]).mean(1), TEXTS),
    "a parameter": paired(lambda self, ids: self.start, TEXTS),
    "a transpose": lambda: NET(BATCH).transpose(1, 2).reshape(3, 4, 6).sum().backward(),
    "data in another shape": lambda: NET(BATCH.view(3, 4, 6).transpose(1, 2)).sum().backward(),
    "heads transposed and merged": lambda: (NET(HEADS) * 2).transpose(1, 2).reshape(3, 5, 8).sum(),
    "a size of 1": lambda: (NET(BATCH[:, :1]) * 2).reshape(3, 4, 1).sum(),
    "relative positions, shifted": lambda: NET(BATCH).view(3, 4, 6)[:, 1:].reshape(3, 6, 3).sum().backward(),
    "autocast": autocast(nn.Linear(4, 4), nn.Linear(4, 4)),
    "no autocast": lambda: nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))(X).sum().backward(),
    "casts by hand": lambda: BY_HAND(X).sum().backward(),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_hardly_meant_is_named(case):
    step, rule, severity = WRONG[case]
    assert {(finding.rule, finding.severity) for finding in found(step)} == {(rule, severity)}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_meant_is_not(case):
    assert found(RIGHT[case]) == []


def test_a_cat_whose_tensors_were_not_recorded_is_no_cache():
    assert dataflow_findings(make_ops(*[{"op": "aten.cat.default"}] * 40), TENSORS.frame(), {}) == []


def test_a_loss_whose_tensors_were_not_recorded_has_no_targets_that_are_known():
    names = ("torch.nn.functional.gru", "aten.gru.input", "aten.embedding.default", "aten.nll_loss_forward.default")
    assert dataflow_findings(make_ops(*[{"op": name} for name in names]), TENSORS.frame(), {}) == []
