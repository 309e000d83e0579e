"""Attention in half precision has a logsumexp that is right to 14 bits; one that is further off is wrong."""

import pytest
import torch
import torch.nn.functional as F

from nbkit.capture.diff.fast_exp import NOISE
from tests.capture.diff.planted import compared, with_fault, wrong

OP = "aten._scaled_dot_product_flash_attention_for_cpu.default"


def attention(dtype, length, scale=0.1):
    return lambda: F.scaled_dot_product_attention(*(scale * torch.randn(2, 3, length, 16, dtype=dtype) for _ in "qkv"))


@pytest.mark.parametrize("length", [1, 7, 64, 200])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_right_attention_is_ok(dtype, length):
    trace = compared(attention(dtype, length), ops=OP)
    assert trace.diffs["status"].tolist() == ["ok", "ok"]


@pytest.mark.parametrize(("dtype", "error"), [(torch.bfloat16, 5e-3), (torch.float32, 1e-3)])
def test_a_logsumexp_further_off_is_wrong(dtype, error):
    def change(func, args, out):
        return out[0], out[1] + error

    trace = with_fault(attention(dtype, 32), OP, change, ops=OP)
    assert wrong(trace)["position"].tolist() == [1]


@pytest.mark.parametrize("length", [8, 64, 512])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_how_far_the_kernels_of_torch_are_off(dtype, length):
    """What fast_exp.py says of them: about 2**-14, which is far above the rounding of a float32."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    given = [torch.randn(2, 4, length, 16, dtype=dtype) for _ in "qkv"]
    error = kernel(*given, 0.0, True)[1] - kernel(*(one.double() for one in given), 0.0, True)[1]
    assert NOISE / 2 < error.abs().max() < 2 * NOISE
