"""Masks that triu and tril make: those that hide each position from itself or show the next one, and right ones."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.dataflow.steps import found

T, D = 6, 4
Q, K, V = (torch.randn(2, 3, T, D, requires_grad=True) for _ in range(3))
ONES, INF = torch.ones, float("-inf")
X = torch.randn(2, T, D)
HEADS = nn.MultiheadAttention(D, 2, batch_first=True)


def attend(mask=None, fill=None, value=INF):
    scores = Q @ K.transpose(-1, -2)
    scores = scores if mask is None else scores + mask
    scores = scores if fill is None else scores.masked_fill(fill, value)
    return (F.dropout(scores.softmax(-1), 0.1) @ V).sum().backward()


def fused(mask, dropout=0.0):
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, dropout_p=dropout).sum()


def heads(mask):
    return HEADS(X, X, X, attn_mask=mask)[0].sum()


def upper(diagonal, full=1.0):
    return torch.triu(torch.full((T, T), full), diagonal)


def lower(diagonal):
    return torch.tril(ONES(T, T), diagonal)


WRONG = {
    "triu fills": (lambda: attend(fill=torch.triu(ONES(T, T)).bool()), "triu", "first"),
    "triu of booleans": (lambda: attend(fill=ONES(T, T, dtype=torch.bool).triu(0)), "triu", "first"),
    "triu in place": (lambda: attend(fill=ONES(T, T).triu_().bool()), "triu_", "first"),
    "triu with a large number": (lambda: attend(fill=upper(0) == 1, value=-1e9), "triu", "first"),
    "triu is added": (lambda: attend(upper(0, INF)), "triu", "first"),
    "triu is scaled": (lambda: attend(upper(0) * -1e9), "triu", "first"),
    "what tril leaves out": (lambda: attend(fill=lower(-1) == 0), "tril", "first"),
    "one minus tril": (lambda: attend((1 - lower(-1)) * -1e9), "tril", "first"),
    "tril fills": (lambda: attend(fill=lower(0).bool()), "tril", "last"),
    "for each head": (lambda: attend(fill=upper(0)[None, None].bool().expand(2, 3, T, T)), "triu", "first"),
    "turned": (lambda: attend(fill=lower(0).t() == 1), "tril", "first"),
    "fused": (lambda: fused(upper(0, INF)), "triu", "first"),
    "fused, the wrong way round": (lambda: fused(upper(1).bool()), "triu", "last"),
    "fused, with dropout": (lambda: fused(lower(0) * -1e9, 0.1), "tril", "last"),
    "multi-head": (lambda: heads(upper(0).bool()), "triu", "first"),
    "where": (lambda: attend(torch.where(lower(-1).bool(), 0.0, INF)), "tril", "first"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mask_that_hides_the_diagonal_is_named(case):
    step, op, end = WRONG[case]
    [finding] = found(step)
    assert (finding.rule, finding.severity) == ("hidden_diagonal", "warning")
    assert finding.op.startswith(f"aten.{op}")
    assert f"the mask of {op} hides each position from itself, so that the {end} one sees no" in finding.message


def attend_by_two_ways(mask):
    """The same mask is added, and fills."""
    return attend(mask * -1e9, fill=mask.bool())


SHOWN = {
    "by two ways": lambda: attend_by_two_ways(upper(2)),
    "triu fills": lambda: attend(fill=upper(2).bool()),
    "triu is added": lambda: attend(upper(2, INF)),
    "what tril leaves out": lambda: attend(fill=lower(1) == 0),
    "fused": lambda: fused(lower(1).bool()),
    "multi-head": lambda: heads(upper(2).bool()),
    "where": lambda: attend(torch.where(lower(1).bool(), 0.0, INF)),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_mask_that_shows_the_next_position_is_named(case):
    [finding] = found(SHOWN[case])
    assert (finding.rule, finding.severity) == ("shown_next", "hint")
    assert "shows each position the next one" in finding.message


def strictly_before(replace):
    """Looks at earlier positions alone, and says what the first one gets."""
    weights = (Q @ K.transpose(-1, -2)).masked_fill(upper(0).bool(), -1e9).softmax(-1)
    return (replace(weights) @ V).sum()


def zero_first(weights):
    return torch.cat([torch.zeros_like(weights[..., :1, :]), weights[..., 1:, :]], -2)


def replaced_later():
    made = (Q @ K.transpose(-1, -2)).masked_fill(upper(0).bool(), INF).softmax(-1) @ V
    return made.nan_to_num().sum()


def with_a_first_key():
    """A key that all see stands in front: the mask is no square."""
    keys = torch.cat([K[:, :, :1], K], 2)
    scores = (Q @ keys.transpose(-1, -2)).masked_fill(torch.triu(ONES(T, T + 1), 1).bool(), INF)
    return (scores.softmax(-1) @ torch.cat([V[:, :, :1], V], 2)).sum()


def annotated():
    """As torch's tutorial made it."""
    mask = (torch.triu(ONES(T, T)) == 1).transpose(0, 1)
    mask = mask.float().masked_fill(mask == 0, INF).masked_fill(mask == 1, 0.0)
    return attend(mask)


RIGHT = {
    "triu above the diagonal": lambda: attend(fill=upper(1).bool()),
    "added": lambda: attend(upper(1, INF)),
    "what tril leaves out": lambda: attend(fill=lower(0) == 0),
    "inverted": lambda: attend(fill=~lower(0).bool()),
    "scaled": lambda: attend((1 - lower(0)) * -1e9),
    "where": lambda: attend(torch.where(lower(0).bool(), 0.0, INF)),
    "annotated": annotated,
    "fused": lambda: fused(lower(0).bool()),
    "fused, added": lambda: fused(upper(1, INF)),
    "causal": lambda: F.scaled_dot_product_attention(Q, K, V, is_causal=True).sum(),
    "multi-head": lambda: heads(upper(1).bool()),
    "of torch": lambda: heads(nn.Transformer.generate_square_subsequent_mask(T)),
    "backwards": lambda: attend(fill=lower(-1).bool()),
    "triu in place": lambda: attend(fill=ONES(T, T).triu_(1).bool()),
    "a look ahead": lambda: attend(fill=upper(3).bool()),
    "a window": lambda: attend(fill=upper(2).bool() | lower(-2).bool()),
    "a window that is added": lambda: attend(upper(2, INF), fill=lower(-2).bool()),
    "the first row is made zero": lambda: strictly_before(zero_first),
    "the first row is weighed": lambda: strictly_before(lambda weights: weights * lower(-1)),
    "NaN is replaced": lambda: strictly_before(torch.nan_to_num),
    "NaN is replaced later": replaced_later,
    "a first key": with_a_first_key,
    "a decay": lambda: attend(upper(0) * -0.1),
    "shown weights": lambda: torch.triu(ONES(T, T)).masked_fill(lower(0) == 0, 7.0).softmax(-1),
    "a matrix product": lambda: (torch.triu(ONES(T, T)) @ V).sum(),
    "pairs of a loss": lambda: (X @ X.mT).masked_fill(lower(0).bool(), INF).flatten(1).softmax(1).log().sum(),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_mask_is_not_named(case):
    assert found(RIGHT[case]) == []


PADDING = torch.arange(T) >= 4
BOTH = torch.ones(2, 1, 1, T).masked_fill(PADDING, 0)
VISIBLE = {
    "filled": (lambda: attend(fill=PADDING, value=-1e-9), "masked_fill puts -1e-09 where a mask of shape [6] is set"),
    "for each head": (lambda: attend(fill=PADDING.expand(2, 1, 1, T), value=1e-9), "shape [2, 1, 1, 6] is set"),
    "where": (lambda: attend(torch.where(PADDING, -1e-6, 0.0)), "where puts -1e-06"),
    "added": (lambda: attend((1 - BOTH) * -1e-9), "mul puts -1e-09 where a mask of shape [2, 1, 1, 6] is set"),
    "fused": (lambda: fused(((1 - BOTH) * -1e-9).expand(2, 1, T, T)), "mul puts -1e-09"),
    "scaled": (lambda: scaled_down(-1e-9), "masked_fill puts -1e-09"),
    "classes": (lambda: Q.masked_fill(PADDING[:D], -1e-8).log_softmax(-1).sum(), "before log_softmax: it hides"),
}


def scaled_down(value):
    return ((Q @ K.mT).masked_fill(PADDING, value) / 4).float().softmax(-1).sum()


@pytest.mark.parametrize("case", VISIBLE)
def test_a_mask_that_hides_nothing_is_named(case):
    step, message = VISIBLE[case]
    [finding] = found(step)
    assert (finding.rule, finding.severity) == ("visible_mask", "warning")
    assert message in finding.message
    assert "it hides nothing there, as exp(" in finding.message


NOT_VISIBLE = {
    "a large number": lambda: attend(fill=PADDING, value=-1e9),
    "minus infinity": lambda: attend(fill=PADDING),
    "zero": lambda: attend(fill=PADDING, value=0.0),
    "added": lambda: attend((1 - BOTH) * -1e9),
    "behind the softmax": lambda: ((Q @ K.mT).softmax(-1).masked_fill(PADDING, 1e-9) @ V).sum(),
    "a logarithm between": lambda: (Q @ K.mT).exp().masked_fill(PADDING, 1e-9).log().softmax(-1).sum(),
    "made large": lambda: attend(torch.where(PADDING, -1e-6, 0.0) * 1e9),
    "hidden later": lambda: (Q @ K.mT).masked_fill(PADDING, 1e-9).masked_fill(PADDING, INF).softmax(-1).sum(),
    "whole rows": lambda: attend(fill=PADDING[:, None], value=1e-9),
    "another dimension": lambda: (Q @ K.mT).masked_fill(PADDING, 1e-9).log_softmax(0).sum(),
    "zeros of the scores": lambda: attend_without_zeros(),
    "noise": lambda: attend(torch.randn(T, T) * 1e-4),
    "a bias": lambda: attend(nn.Linear(T, T)(torch.ones(T, T)) * 1e-4),
    "smoothed labels": lambda: (
        torch.full((2, T), 0.1).masked_fill(PADDING, 1e-4) * Q.sum((1, 3)).log_softmax(-1)
    ).sum(),
}


def attend_without_zeros():
    scores = (Q @ K.mT).relu()
    return scores.masked_fill(scores == 0, 1e-9).softmax(-1).sum()


@pytest.mark.parametrize("case", NOT_VISIBLE)
def test_a_mask_that_hides_or_is_none_is_not_named(case):
    assert found(NOT_VISIBLE[case]) == []
