"""Tests masks that are shifted, turned round or ignored."""

import pytest
import torch
import torch.nn.functional as F

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt

X, MASK = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, False])


@pytest.mark.parametrize(
    ("kind", "filled", "chosen"),
    [
        ("shifted_mask", [1, 0, 3], [-1, 2, -3]),
        ("inverted_mask", [1, 0, 0], [-1, 2, 3]),
        ("ignored_mask", [1, 2, 3], [1, 2, 3]),
    ],
)
def test_bool_masks(device, kind, filled, chosen):
    _, actual = spoilt(device, Fault("masked_fill", kind), lambda x, mask: x.masked_fill(mask, 0.0), X, MASK)
    assert actual.tolist() == filled
    _, actual = spoilt(device, Fault("where", kind), lambda x, mask: torch.where(mask, x, -x), X, MASK)
    assert actual.tolist() == chosen


@pytest.mark.parametrize(("kind", "seen"), [("shifted_mask", 2), ("ignored_mask", 4)])
def test_causal_attention_sees_more(device, kind, seen):
    def attend(q):
        return F.scaled_dot_product_attention(q, q, q, is_causal=True)

    q = torch.randn(1, 1, 4, 8)
    _, actual = spoilt(device, Fault("_scaled_dot_product_flash*", kind), attend, q)
    mask = torch.ones(4, 4, dtype=torch.bool).tril(seen - 1)
    torch.testing.assert_close(actual, F.scaled_dot_product_attention(q, q, q, attn_mask=mask))


def test_a_triangle_begins_one_diagonal_further(device):
    for op, compute in (("triu", lambda x, k=0: x.triu(k)), ("tril", lambda x, k=0: x.tril(k))):
        _, actual = spoilt(device, Fault(op, "shifted_diagonal"), compute, torch.ones(3, 3))
        assert torch.equal(actual, compute(torch.ones(3, 3), 1))


def test_what_they_cannot_befall(device):
    assert "takes no mask" in obstacle(device, "exp", "ignored_mask", torch.exp, X)
    assert "makes no triangle" in obstacle(device, "exp", "shifted_diagonal", torch.exp, X)
