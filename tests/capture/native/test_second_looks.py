"""What differs by more than its own rounding is set against the conditioning natively, with Python's own numbers."""

import pytest
import torch

from nbkit.capture.diff.mode import DiffMode
from tests.capture.native.test_same_diffs import assert_same

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}
A, B = (torch.randn(6, 201, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
# Products that cancel to next to nothing.
LEFT, RIGHT = torch.cat([A, A], 1), torch.cat([B, -B], 1).T
QUERY = torch.randn(1, 2, 9, 8, generator=torch.Generator().manual_seed(3))
WORK = {
    "contiguous": lambda dtype: LEFT.to(dtype).mm(RIGHT.contiguous().to(dtype)),
    "transposed": lambda dtype: LEFT.to(dtype).mm(RIGHT.to(dtype)),
    "in place": lambda dtype: torch.zeros(6, 6, dtype=dtype).addmm_(LEFT.to(dtype), RIGHT.to(dtype)),
    "one tensor twice": lambda dtype: torch.stack([LEFT.to(dtype), -LEFT.to(dtype)]).sum((0, 2)),
    "a list": lambda dtype: torch.einsum("ij,kj->ik", LEFT.to(dtype), RIGHT.T.to(dtype)).sum(),
}


@pytest.fixture
def again(monkeypatch):
    """Ops that the native part could not settle."""
    ops, before = [], DiffMode.look_again

    def counting(self, func, *call):
        ops.append(str(func))
        before(self, func, *call)

    monkeypatch.setattr(DiffMode, "look_again", counting)
    return ops


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("work", WORK)
def test_products_that_cancel(work, dtype, again, monkeypatch):
    trace = assert_same(lambda: lambda: WORK[work](DTYPES[dtype]), monkeypatch)
    assert trace.meta["mismatches"] == 0
    assert again == []


def attention(dtype, scale):
    x = (QUERY * scale).to(dtype).requires_grad_()
    torch.nn.functional.scaled_dot_product_attention(x, x, x).sum().backward()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1.0, 8.0, float("nan")])
def test_attention(scale, dtype, monkeypatch):
    assert_same(lambda: lambda: attention(DTYPES[dtype], scale), monkeypatch)


def test_attention_without_dropout_is_compared_natively(again, monkeypatch):
    trace = assert_same(lambda: lambda: attention(torch.float32, 1.0), monkeypatch)
    assert trace.diffs["op"].str.contains("flash_attention_for_cpu").sum() >= 2
    assert again == []


def test_attention_with_dropout_is_left_to_python(monkeypatch):
    def step():
        torch.nn.functional.scaled_dot_product_attention(QUERY, QUERY, QUERY, dropout_p=0.5)

    assert_same(lambda: step, monkeypatch)


def test_a_mask_of_inf_and_lists_of_unlike_sizes(again, monkeypatch):
    def step():
        x = QUERY.clone().requires_grad_()
        mask = torch.full((9, 9), -torch.inf).fill_diagonal_(0.0)
        torch.nn.functional.scaled_dot_product_attention(x, x, x, mask).square().sum().backward()
        torch._foreach_norm([torch.full((1 << 16,), 0.1), torch.ones(3)])

    assert assert_same(lambda: step, monkeypatch).meta["mismatches"] == 0
    assert again == []
