"""Scales of attention and similarities: what is named, and right steps."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.dataflow.steps import found

B, T, D = 3, 5, 16
QKV, X, TABLE = nn.Linear(D, 3 * D), torch.randn(B, T, D), nn.Embedding(11, D)
ENCODER, SAMPLES = nn.Linear(9, 12), torch.randn(10, 9)


def attend(scale, behind=1.0, prepare=lambda x: x, before=1.0):
    q, k, v = QKV(X).chunk(3, -1)
    q, k = prepare(q if before == 1 else q * before), prepare(k)
    scores = q @ k.mT
    weights = (scores if scale is None else scores * scale).softmax(-1)
    ((weights if behind == 1 else weights * behind) @ v).square().mean().backward()


def heads(divide):
    q, k, v = QKV(X).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
    (divide(q @ k.transpose(-2, -1)).softmax(-1) @ v).square().mean().backward()


def fused(scale):
    q, k, v = (one[:, None] for one in QKV(X).chunk(3, -1))
    F.scaled_dot_product_attention(q, k, v, scale=scale).square().mean().backward()


MISPLACED = {
    "multiplied": lambda: attend(4.0),
    "divided by the inverse": lambda: heads(lambda scores: scores / 8**-0.5),
    "masked, too": lambda: heads(lambda scores: (scores * 8**0.5).masked_fill(torch.ones(T, T).triu(1) > 0, -1e9)),
    "fused": lambda: fused(4.0),
    "behind the softmax": lambda: attend(None, behind=0.25),
}


@pytest.mark.parametrize("case", MISPLACED)
def test_a_scale_that_stands_wrong_is_named(case):
    findings = found(MISPLACED[case])
    assert [(one.rule, one.severity) for one in findings] == [("misplaced_scale", "warning")]
    assert "sqrt(" in findings[0].message


def cosine(scale):
    attend(scale, prepare=lambda x: F.normalize(x, dim=-1))


PLACED = {
    "divided": lambda: attend(0.25),
    "heads": lambda: heads(lambda scores: scores / 8**0.5),
    "none": lambda: attend(None),
    "the query before": lambda: attend(None, before=0.25),
    "cosines": lambda: cosine(4.0),
    "a norm of queries and keys": lambda: attend(4.0, prepare=lambda x: F.layer_norm(x, (D,))),
    "another number": lambda: attend(1.5),
    "fused": lambda: fused(None),
    "weights that are scaled, of scores that are": lambda: attend(0.25, behind=0.25),
    "weights by another number": lambda: attend(None, behind=0.5),
}


@pytest.mark.parametrize("case", PLACED)
def test_a_scale_that_stands_right_is_not(case):
    assert found(PLACED[case]) == []


def contrast(change=lambda scores: scores, other=None, loss=F.cross_entropy):
    z = F.normalize(ENCODER(SAMPLES), dim=-1)
    scores = change(z @ (z if other is None else other(z)).T / 0.1)
    loss(scores, torch.arange(len(scores)).roll(5)).backward()


def links(scores, labels):
    return F.binary_cross_entropy_with_logits(scores, torch.eye(10))


def log_sum(scores, labels):
    return scores.logsumexp(1).mean()


ITSELF = {
    "cross entropy": contrast,
    "a log sum": lambda: contrast(loss=log_sum),
    "the partner detached": lambda: contrast(other=lambda z: z.detach()),
}


@pytest.mark.parametrize("case", ITSELF)
def test_a_similarity_to_itself_is_named(case):
    [finding] = found(ITSELF[case])
    assert (finding.rule, finding.severity) == ("self_similarity", "warning")
    assert "the similarities of 10 rows to the same 10 rows" in finding.message


def attention_of_shared_queries():
    q, v = QKV(X).chunk(3, -1)[:2]
    (F.softmax(q @ q.mT / 4, -1) @ v).square().mean().backward()


def tied_words():
    """A language model reads and scores with one table."""
    F.cross_entropy(TABLE(torch.arange(8)) @ TABLE.weight.T, torch.arange(8)).backward()


APART = {
    "filled": lambda: contrast(lambda scores: scores.fill_diagonal_(float("-inf"))),
    "masked": lambda: contrast(lambda scores: scores.masked_fill(torch.eye(10, dtype=torch.bool), -1e9)),
    "lowered": lambda: contrast(lambda scores: scores - torch.eye(10) * 1e9),
    "taken out": lambda: contrast(lambda scores: scores[~torch.eye(10, dtype=torch.bool)].view(10, 9), loss=log_sum),
    "two encoders": lambda: contrast(other=lambda z: F.normalize(ENCODER(SAMPLES.flip(0)), dim=-1)),
    "attention": attention_of_shared_queries,
    "one table": tied_words,
    "a graph of them": lambda: contrast(
        loss=lambda scores, _: F.binary_cross_entropy_with_logits(scores, torch.eye(10))
    ),
}


@pytest.mark.parametrize("case", APART)
def test_others_alone_are_right(case):
    assert found(APART[case]) == []
