"""`~` of integers that becomes a mask, and means over what a mask has set to 0: what is named, and what is right."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.dataflow.steps import found

NET, X = nn.Linear(8, 8), torch.randn(4, 6, 8)
KEPT = torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]] * 2)
BYTES, FLAGS, IDS, LENGTHS = KEPT.to(torch.uint8), KEPT.bool(), torch.arange(24).reshape(4, 6) % 8, KEPT.sum(1)


def named(of):
    return [(finding.rule, finding.severity) for finding in found(lambda: of(NET(X)).backward())]


def each(y):
    return F.cross_entropy(y.transpose(1, 2), IDS, reduction="none")


@pytest.mark.parametrize(
    "of",
    [
        lambda y: y.masked_fill((~KEPT).bool()[..., None], 0).sum(),
        lambda y: (y * (~KEPT)[..., None]).sum(),
        lambda y: (y + (~KEPT).float()[..., None] * -1e4).softmax(1).sum(),
        lambda y: (y * ((~BYTES) != 0)[..., None]).sum(),
        lambda y: (y * torch.logical_and(~KEPT, IDS > 2)[..., None]).sum(),
    ],
    ids=["cast to bool", "factor", "cast to float", "compared with 0", "logical"],
)
def test_the_complement_of_an_integer_is_no_mask(of):
    assert named(of) == [("inverted_integer", "warning")]


def test_what_the_complement_is_is_said():
    (signed,) = found(lambda: (NET(X) * (~KEPT)[..., None]).sum())
    (unsigned,) = found(lambda: (NET(X) * (~BYTES)[..., None]).sum())
    assert signed.message == (
        "`~` inverts the bits of int64 numbers, and mul takes them as true and false, or as a factor: ~0 is -1 and ~1 "
        "is -2, so that both are true"
    )
    assert "~0 is 255 and ~1 is 254" in unsigned.message


@pytest.mark.parametrize(
    "of",
    [
        lambda y: y.masked_fill(~FLAGS[..., None], 0).sum(),
        lambda y: y.masked_fill(~KEPT.bool()[..., None], 0).sum(),
        lambda y: (y * ((~IDS) & 3)[..., None]).sum(),
        lambda y: y[:, ~torch.tensor([0, 1])].sum(),
    ],
    ids=["booleans", "cast before", "bits", "indices"],
)
def test_the_complement_of_booleans_and_of_bits_is_right(of):
    assert named(of) == []


@pytest.mark.parametrize(
    "of",
    [
        lambda y: (y * KEPT[..., None]).mean(1).sum(),
        lambda y: (each(y) * (IDS != 0)).mean(),
        lambda y: (y.square() * (torch.arange(6) < LENGTHS[:, None])[..., None]).mean(),
        lambda y: y.square().masked_fill(~FLAGS[..., None], 0).mean(),
        lambda y: (y.square() * KEPT[..., None]).sum() / y.numel(),
    ],
    ids=["pooling", "padding id", "lengths", "masked_fill", "divided sum"],
)
def test_a_mean_over_what_a_mask_has_set_to_0_is_a_hint(of):
    assert named(of) == [("padded_mean", "hint")]


def test_how_many_it_divides_by_is_said():
    (finding,) = found(lambda: (NET(X).square() * KEPT[..., None]).mean().backward())
    assert finding.message == (
        "the mean divides by all 192 elements, and counts those that mul has set to 0 by a mask of shape [4, 6, 1]: "
        "the more of them, the smaller it is"
    )


@pytest.mark.parametrize(
    "of",
    [
        lambda y: ((y * KEPT[..., None]).sum(1) / LENGTHS[:, None]).sum(),
        lambda y: (y * KEPT[..., None]).mean() / KEPT.float().mean(),
        lambda y: (y * KEPT[..., None]).mean(-1).sum(),
        lambda y: (y * (y > 0)).mean(),
        lambda y: F.dropout(y).mean(),
        lambda y: (each(y) * IDS).mean(),
        lambda y: (y.square() * KEPT[..., None]).sum() / 4,
        lambda y: (y * torch.rand(4, 6, 1)).mean(),
    ],
    ids=[
        "by lengths", "scaled back", "over features", "hinge", "dropout", "integer weights", "by batch", "weights",
    ],
)  # fmt: skip
def test_other_means_are_right(of):
    assert named(of) == []
