"""Tests NaN in masked rows, and only there."""

import pytest
import torch
import torch.nn.functional as F

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt

KIND = "nan_masked_rows"
MASK = torch.tensor([[False, False, False], [False, True, False]])


def rows_of_nan(tensor):
    """Returns for each row whether it is all NaN; a row of which only a part is fails."""
    assert torch.equal(tensor.isnan().all(-1), tensor.isnan().any(-1))
    return tensor.isnan().all(-1).tolist()


@pytest.mark.parametrize(
    ("op", "compute"),
    [
        ("_softmax", lambda x, mask: x.masked_fill(mask, -torch.inf).softmax(-1)),
        ("masked_fill", lambda x, mask: x.masked_fill(mask, 0.0)),
        ("where", lambda x, mask: torch.where(~mask, x, x * 0)),
    ],
)
def test_rows_with_a_masked_element_are_nan(device, op, compute):
    expected, actual = spoilt(device, Fault(op, KIND), compute, torch.randn(2, 3), MASK)
    assert rows_of_nan(actual) == [False, True]
    assert torch.equal(actual[0], expected[0])


@pytest.mark.parametrize(
    ("mask", "spoilt_rows"),
    [
        (None, [True, False, False]),
        (torch.ones(3, 3, dtype=torch.bool).tril(), [True, True, False]),
        (torch.zeros(3, 3).index_fill(1, torch.tensor([0]), -torch.inf).triu(), [True, False, False]),
    ],
)
def test_masked_rows_of_attention(device, mask, spoilt_rows):
    def attend(q, *mask):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=mask[0] if mask else None, is_causal=not mask)

    masks = [] if mask is None else [mask]
    _, actual = spoilt(device, Fault("_scaled_dot_product_flash*", KIND), attend, torch.randn(1, 2, 3, 4), *masks)
    assert rows_of_nan(actual) == [[spoilt_rows] * 2]


def test_an_op_without_a_mask_is_left_alone(device):
    assert "aten.exp.default has no mask" in obstacle(device, "exp", KIND, torch.exp, torch.ones(2, 3))
    assert "no floating-point result" in obstacle(device, "argmax", KIND, torch.argmax, torch.ones(2, 3))
