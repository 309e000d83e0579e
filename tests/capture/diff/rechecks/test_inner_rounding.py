"""What an op rounds inside is allowed for: exp() of attention in half precision, and in the gradient of log_softmax."""

import pytest
import torch
import torch.nn.functional as F

from nbkit.capture.diff.rechecks.inner_rounding import NOISE_OF_EXP as NOISE
from tests.capture.diff.planted import compared, with_fault, wrong

KERNEL = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
OP = "aten._scaled_dot_product_flash_attention_for_cpu.default"


def attention(dtype, length, scale=0.1):
    return lambda: F.scaled_dot_product_attention(*(scale * torch.randn(2, 3, length, 16, dtype=dtype) for _ in "qkv"))


def logsumexp(arguments):
    """The second result of attention to three tensors, computed in float64."""
    query, key, _ = (tensor.double() for tensor in arguments[:3])
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return scores.logsumexp(-1)


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


@pytest.mark.parametrize(
    ("dtype", "status"), [(torch.bfloat16, "ok"), (torch.float16, "ok"), (torch.float32, "mismatch")]
)
def test_a_logsumexp_right_to_14_bits_is_ok_in_half_precision_alone(dtype, status):
    def change(func, args, out):
        out[1].copy_(logsumexp(args) + NOISE)
        return out

    trace = with_fault(attention(dtype, 32), OP, change, ops=OP)
    assert trace.diffs["status"].tolist() == ["ok", status]


@pytest.mark.parametrize("length", [8, 64, 512])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_no_kernel_of_torch_is_further_off(dtype, length):
    """About 2**-14 where exp() is the fast one, which is up to the CPU and the length."""
    arguments = [torch.randn(2, 4, length, 16, dtype=dtype) for _ in "qkv"]
    error = KERNEL(*arguments)[1] - logsumexp(arguments)
    assert error.abs().max() < 2 * NOISE


def confident(margin, dtype=torch.float32):
    """What computes the gradient of a cross entropy of samples that are classified right by this margin."""
    labels = torch.arange(64) % 10
    scores = (torch.randn(64, 10) * 0.5 + F.one_hot(labels, 10) * margin).to(dtype)

    def run():
        leaf = scores.clone().requires_grad_()
        F.cross_entropy(leaf, labels).backward()

    return run


GRADIENT = "aten._log_softmax_backward_data.default"


@pytest.mark.parametrize("margin", [0, 6, 8, 10, 12, 15, 20, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_of_what_is_classified_well_is_right(dtype, margin):
    trace = compared(confident(margin, dtype), ops=GRADIENT)
    assert trace.diffs["status"].tolist() == ["ok"]


@pytest.mark.parametrize("ulps", [1, 200])
def test_such_a_gradient_may_be_off_by_the_rounding_of_its_terms_and_no_more(ulps):
    """Of an exact kernel whose exp(), near 1, is off by so many half ULPs of float32."""

    def change(func, args, out):
        gradient, output = args[0].double(), args[1].double()
        total = gradient.sum(1, keepdim=True)
        out.copy_(gradient - output.exp() * (1 + ulps * 2.0**-24) * total)
        return out

    trace = with_fault(confident(12), GRADIENT, change, ops=GRADIENT)
    assert trace.diffs["status"].tolist() == ["ok" if ulps == 1 else "mismatch"]
