"""The logsumexp of attention says nothing where the attention is NaN, and something everywhere else."""

import math

import torch
import torch.nn.functional as F

from tests.capture.diff.planted import compared, with_fault, wrong

ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu.default"
NAN = math.nan


def attention(places):
    """Causal attention whose first position is NaN in these of query, key and value; float32 counts it as masked."""
    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, 5, 8) for _ in range(3)]
    for place in places:
        inputs[place][0, 0, 0] = NAN
    return F.scaled_dot_product_attention(*inputs, is_causal=True)


def test_a_logsumexp_beside_nan_blames_no_op():
    assert wrong(compared(lambda: attention((0, 1, 2)))).empty


def test_a_nan_that_the_kernel_loses_is_found():
    def lose(func, args, out):
        # What torch's float32 kernels make of a NaN in the query; with AVX512 those of float64, too (2.13), so that
        # the value has it here.
        out[0][0, 0, 0] = 0.0
        return out

    found = wrong(with_fault(lambda: attention((2,)), ATTENTION, lose))
    assert found[["op", "position"]].to_numpy().tolist() == [[ATTENTION, 0]]


def test_a_wrong_logsumexp_is_found_beside_nan_as_well():
    def change(func, args, out):
        out[1][0, 0, 1] = 0.0  # it was finite, although the attention is NaN
        return out

    trace = with_fault(lambda: attention((2,)), ATTENTION, change)
    assert list(wrong(trace)["position"]) == [1]
