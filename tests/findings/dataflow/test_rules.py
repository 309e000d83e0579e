"""Suspicious dataflow: what is named, and the right steps that are not."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.models import MODELS, train_step
from tests.findings.dataflow.steps import found


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.positions, self.head = nn.Embedding(9, 8), nn.Embedding(6, 8), nn.Linear(8, 9)
        self.mix = nn.GRU(8, 8, batch_first=True)

    def forward(self, ids):
        x = self.embedding(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.head(self.mix(x)[0])


class Copier(Tokens):
    """Sees the whole sequence; or has a decoder, which reads tokens of its own."""

    def __init__(self, has_decoder):
        super().__init__()
        self.has_decoder = has_decoder

    def forward(self, ids):
        if not self.has_decoder:
            return self.head(self.embedding(ids))
        return super().forward(ids.roll(1)) + self.head(self.embedding(ids))


class Windows(Copier):
    """Hides the borders of windows that look both ways."""

    def forward(self, ids):
        return super().forward(ids) * torch.ones(2, 5).tril().flip(1).sum()


class Gate(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.change = change

    def forward(self, x):
        return self.change(x)


class Residual(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.before, self.gate = nn.Linear(8, 8), Gate(change)

    def forward(self, x):
        h = self.before(x)
        return (h + self.gate(h)).sum()


def scaled_part(x):
    part = x[..., :4]
    part *= 0.5
    return x


def input_part(x):
    """No recorded op made it."""
    net = Residual(scaled_part)
    net.before = nn.Identity()
    return net(x)


def written_cache(x):
    cache = torch.zeros(3, 8)
    cache[1:2] = x[:1]
    cache[:1].add_(1)
    return cache[:2]


def spoken(change):
    F.ctc_loss(change(SPOKEN(FRAMES)).transpose(0, 1), PHONES, [9, 9], [3, 2]).backward()


def forced(ids):
    """A decoder that is given the right token of each position to predict the next."""
    cell, h, loss, token = nn.GRUCell(8, 8), torch.zeros(2, 8), 0, ids[:, 0]
    context = TOKENS.mix(TOKENS.positions(torch.arange(2)))[0].sum()
    for at in range(1, ids.shape[1]):
        h = cell(TOKENS.embedding(token), h + context)
        loss = loss + F.cross_entropy(TOKENS.head(h), ids[:, at])
        token = ids[:, at]
    loss.backward()


TOKENS = Tokens()
IDS, X, Y = torch.randint(0, 9, (2, 6)), torch.randn(16, 4), torch.randn(16)
SPOKEN, FRAMES, PHONES = nn.Linear(4, 5), torch.randn(2, 9, 4), torch.tensor([[1, 2, 3], [4, 1, 0]])
NET, WIDE = nn.Linear(4, 1), torch.randn(16, 8)
WRONG = {
    "softmax before cross_entropy": (
        lambda: F.cross_entropy(torch.softmax(X @ X.T, 1), torch.arange(16)).add(0),
        "double_activation",
        "log_softmax gets the result of a softmax, which it applies itself",
    ),
    "softmax in another shape": (
        lambda: F.cross_entropy(torch.softmax(X.view(4, 4, 4), -1).flatten(0, 1), torch.zeros(16, dtype=torch.long)),
        "double_activation",
        "log_softmax gets the result of a softmax",
    ),
    "probabilities in nll_loss": (
        lambda: F.nll_loss(NET(X).expand(16, 3).softmax(1), torch.zeros(16, dtype=torch.long)),
        "double_activation",
        "nll_loss gets probabilities where it expects their logarithms",
    ),
    "probabilities in kl_div": (
        lambda: F.kl_div((X @ X.T).softmax(1) + 1e-8, (X @ X.T).softmax(0), reduction="batchmean"),
        "missing_logarithm",
        "kl_div gets the result of softmax [16, 16], probabilities, as its first argument, where it expects their",
    ),
    "probabilities in kl_div beside logarithms": (
        lambda: F.kl_div((X @ X.T).softmax(1), (X @ X.T).log_softmax(0), reduction="sum", log_target=True),
        "missing_logarithm",
        "kl_div gets the result of softmax [16, 16]",
    ),
    "scores in ctc_loss": (
        lambda: spoken(lambda scores: scores),
        "missing_logarithm",
        "ctc_loss gets raw scores, the result of addmm, where it expects logarithms of probabilities: nothing "
        "makes exp() of the 5 classes add up to 1",
    ),
    "scores in ctc_loss, bias apart": (
        lambda: spoken(lambda scores: SPOKEN(FRAMES.mT.contiguous().mT)),
        "missing_logarithm",
        "ctc_loss gets raw scores, the result of mm",
    ),
    "probabilities in ctc_loss": (
        lambda: spoken(lambda scores: scores.softmax(-1)),
        "missing_logarithm",
        "ctc_loss gets probabilities, the result of softmax",
    ),
    "scores in nll_loss": (
        lambda: F.nll_loss(SPOKEN(X), torch.arange(16) % 5),
        "missing_logarithm",
        "nll_loss gets raw scores, the result of addmm, where it expects logarithms of probabilities: nothing makes "
        "exp() of the 5 classes add up to 1",
    ),
    "scores of pixels in nll_loss": (
        lambda: F.nll_loss(F.conv2d(X.view(1, 1, 8, 8), torch.ones(3, 1, 1, 1)), torch.zeros(1, 8, 8).long()),
        "missing_logarithm",
        "nll_loss gets raw scores, the result of convolution, where it expects logarithms of probabilities: nothing "
        "makes exp() of the 3 classes add up to 1",
    ),
    "sigmoid before cross_entropy": (
        lambda: F.cross_entropy(SPOKEN(X).sigmoid(), torch.arange(16) % 5),
        "double_activation",
        "cross_entropy gets the result of a sigmoid: scores between 0 and 1, of which no class can become sure",
    ),
    "sigmoid twice": (
        lambda: F.binary_cross_entropy_with_logits(NET(X).sigmoid(), torch.ones(16, 1)),
        "double_activation",
        "binary_cross_entropy_with_logits gets the result of a sigmoid",
    ),
    "a column against a row": (
        lambda: ((NET(X) - Y) ** 2).mean().backward(),
        "unintended_broadcast",
        "sub of shapes [16, 1] and [16] broadcasts to [16, 16]: each element meets every element of the other",
    ),
    "a column against a row in mse_loss": (
        lambda: F.mse_loss(NET(X), Y).backward(),
        "unintended_broadcast",
        "mse_loss of shapes [16, 1] and [16] broadcasts to [16, 16]",
    ),
    "targets that are the inputs": (
        lambda: F.cross_entropy(TOKENS(IDS).flatten(0, 1), IDS.flatten()),
        "unshifted_targets",
        "the targets of the loss are the 12 tokens that the embedding reads",
    ),
    "targets that are the inputs, cut alike": (
        lambda: F.cross_entropy(TOKENS(IDS[:1, :-1]).flatten(0, 1), IDS[:1, :-1].flatten()),
        "unshifted_targets",
        "the targets of the loss are the 5 tokens that the embedding reads",
    ),
    "a part that is changed in place": (
        lambda: Residual(scaled_part)(X.repeat(1, 2)),
        "overwritten_view",
        "mul_ changes a part of what module before made, in place, and module (root) reads the changed values later",
    ),
    "positions in bfloat16": (
        lambda: torch.arange(1024).to(torch.bfloat16),
        "rounded_positions",
        "1,024 positions are held in bfloat16, which tells integers apart only up to 256",
    ),
    "the first position that float16 does not hold": (
        lambda: torch.arange(2050, dtype=torch.float16),
        "rounded_positions",
        "2,050 positions are held in float16, which tells integers apart only up to 2,048",
    ),
}
RIGHT = {
    "sigmoid and a temperature before cross_entropy": lambda: F.cross_entropy(
        SPOKEN(X).sigmoid() / 0.1, Y.abs().long()
    ),
    "sigmoid before a softmax": lambda: SPOKEN(X).sigmoid().log_softmax(-1).exp().sum(),
    "logarithms of a layer in nll_loss": lambda: F.nll_loss(SPOKEN(X).softmax(1).log(), torch.arange(16) % 5),
    "cross_entropy on scores": lambda: F.cross_entropy(X @ X.T, torch.arange(16)),
    "logarithms in nll_loss": lambda: F.nll_loss((X @ X.T).softmax(1).log(), torch.arange(16)),
    "a distilled model": lambda: F.kl_div((X @ X.T).log_softmax(1), (X.T @ X).softmax(1).repeat(4, 4)),
    "a divergence of logarithms": lambda: F.kl_div((X @ X.T).softmax(1).log(), (X @ X.T).softmax(0), reduction="sum"),
    "a mean of probabilities": lambda: F.kl_div(((X @ X.T).softmax(1) * 0.5 + 0.03).log(), (X @ X.T).softmax(1)),
    "a divergence by hand": lambda: ((X @ X.T).softmax(1) * ((X @ X.T).softmax(1).log() - 1)).sum(),
    "logarithms in ctc_loss": lambda: spoken(lambda scores: scores.log_softmax(-1)),
    "logarithms of a softmax in ctc_loss": lambda: spoken(lambda scores: (scores.softmax(-1) + 1e-8).log()),
    "scores less their sum in ctc_loss": lambda: spoken(lambda scores: scores - scores.logsumexp(-1, keepdim=True)),
    "minus the sum added in ctc_loss": lambda: spoken(lambda scores: scores + -scores.logsumexp(-1, keepdim=True)),
    "softmax of scores over experts, then again": lambda: (X @ X.T).softmax(1).topk(2)[0].softmax(1).sum(),
    "sigmoid as a gate": lambda: F.binary_cross_entropy_with_logits(NET(X).sigmoid() * 2, torch.ones(16, 1)),
    "equal shapes": lambda: ((NET(X).squeeze(-1) - Y) ** 2).mean(),
    "a distance of all pairs": lambda: ((Y[:, None] - Y) ** 2).mean(),
    "a distance to each place": lambda: ((NET(X) - torch.arange(16.0)) ** 2).mean(),
    "a bias": lambda: ((X - X.mean(0)) ** 2).mean(),
    "a norm with its weight": lambda: (X[:4] * X[:4].pow(2).mean(-1, keepdim=True).rsqrt() * X[0]).mean(),
    "a column that stays a table": lambda: NET(X) - Y,
    "one element": lambda: (NET(X[:1]) - Y[:1]).pow(2).mean(),
    "rotary angles": lambda: torch.outer(torch.arange(16.0), Y).cos().mean(),
    "shifted targets": lambda: F.cross_entropy(TOKENS(IDS)[:, :-1].flatten(0, 1), IDS[:, 1:].flatten()),
    "a copy by who sees all": lambda: F.cross_entropy(Copier(False)(IDS).flatten(0, 1), IDS.flatten()),
    "a copy by encoder and decoder": lambda: F.cross_entropy(Copier(True)(IDS).flatten(0, 1), IDS.flatten()),
    "a copy by windows": lambda: F.cross_entropy(Windows(False)(IDS).flatten(0, 1), IDS.flatten()),
    "a decoder that is forced": lambda: forced(IDS),
    "labels of their own": lambda: F.cross_entropy(TOKENS(IDS).flatten(0, 1), IDS.clone().flatten()),
    "a part computed anew": lambda: Residual(lambda x: torch.cat((x[..., :4] * 0.5, x[..., 4:]), -1))(X.repeat(1, 2)),
    "a part of its own that is changed in place": lambda: Residual(lambda x: scaled_part(x * 2))(X.repeat(1, 2)),
    "a part of an input that is changed in place": lambda: input_part(WIDE),
    "a whole changed in place": lambda: Residual(lambda x: x.clone().mul_(2))(X.repeat(1, 2)),
    "a cache that is written": lambda: Residual(lambda x: written_cache(x)[:1] + x)(X.repeat(1, 2)),
    "relu in place": lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))(X).sum(),
    "positions in float32": lambda: torch.arange(1024.0).sin().to(torch.bfloat16),
    "few positions in bfloat16": lambda: torch.arange(200).to(torch.bfloat16),
    "as many positions as float16 holds": lambda: torch.arange(2049, dtype=torch.float16),
    "ids that are cast": lambda: torch.randint(0, 9, (1024,)).to(torch.bfloat16),
}


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("case", WRONG)
def test_what_is_hardly_meant_is_named(case, times):
    step, rule, message = WRONG[case]
    [finding] = found(lambda: [step() for _ in range(times)])
    assert finding.count == times
    assert (finding.rule, finding.severity) == (rule, "warning")
    assert finding.message.startswith(message)
    assert finding.advice and finding.source is not None


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_meant_is_not(case):
    assert found(RIGHT[case]) == []


@pytest.mark.parametrize("model", MODELS)
def test_a_right_training_step_has_none(model):
    assert found(train_step(model)) == []


def test_the_calls_of_a_line_are_one_finding():
    [finding] = found(lambda: [F.cross_entropy((X @ X.T).softmax(1), torch.arange(16)) for _ in range(3)])
    assert finding.count == 3
    assert len(finding.evidence["op_ids"]) == 3
    json.dumps(finding.evidence)
