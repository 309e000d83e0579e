"""The number by which attention scales its scores is found between fused attention and attention by hand."""

import pytest
import torch
import torch.nn.functional as F

import nbkit

INPUTS = [torch.randn(2, 4, 10, 16, generator=torch.Generator().manual_seed(seed)) * 3 for seed in range(3)]


def by_hand(scale, *, is_causal=False):
    def run(q, k, v):
        q, k, v = (one.sin() for one in (q, k, v))
        scores = q @ k.transpose(-1, -2) * scale
        if is_causal:
            scores = scores.masked_fill(torch.ones(10, 10, dtype=torch.bool).triu(1), float("-inf"))
        return scores.softmax(-1) @ v

    return run


def fused(scale=None, *, is_causal=False):
    return lambda q, k, v: F.scaled_dot_product_attention(
        *(one.sin() for one in (q, k, v)), scale=scale, is_causal=is_causal
    )


def first_of(left, right):
    return nbkit.opalign(left, right, inputs=INPUTS).meta["first_divergence"]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    ("left", "right", "here", "there"), [(0.2, None, 0.2, 0.25), (0.25, 0.2, 0.25, 0.2), (1.3, 0.3, 1.3, 0.3)]
)
def test_another_scale_is_named_with_fused_attention_on_either_side(left, right, here, there, is_causal):
    sides = by_hand(left, is_causal=is_causal), fused(right, is_causal=is_causal)
    for first in (first_of(*sides), first_of(*sides[::-1])):
        assert first["kind"] == "scale" and first["kind_explained"] < 1e-3
        numbers = [f"scaled by {there}, not {here}", f"scaled by {here}, not {there}"]
        assert any(one in first["message"] for one in numbers)
        assert f"{there / here:.4g} times" in first["message"] or f"{here / there:.4g} times" in first["message"]


def test_attention_by_hand_with_the_right_scale_agrees_with_fused_attention():
    assert first_of(by_hand(0.25), fused()) is None
    assert first_of(fused(is_causal=True), by_hand(0.25, is_causal=True)) is None


def test_a_mask_that_one_side_lacks_is_no_scale():
    for sides in ((by_hand(0.25), fused(is_causal=True)), (fused(), by_hand(0.25, is_causal=True))):
        first = first_of(*sides)
        assert first["kind"] == "missing_mask" and "as if it had no mask" in first["message"]


def test_a_scale_that_one_side_is_not_given_is_named_where_operands_are_the_same():
    q = torch.randn(2, 2, 6, 16, generator=torch.Generator().manual_seed(0))
    attend = torch.nn.functional.scaled_dot_product_attention
    both = nbkit.opalign(lambda q: attend(q, q, q), lambda q: attend(q, q, q, scale=0.2), inputs=(q,))
    found = both.meta["first_divergence"]
    assert found["kind"] == "scale" and "is not given on the left, 0.2 on the right" in found["message"]
