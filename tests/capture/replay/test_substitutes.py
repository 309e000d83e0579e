"""What stands in for ops without a kernel on the CPU gives what torch's own formulas and autograd give."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from nbkit.capture.replay import lstm
from nbkit.capture.replay.op_traits import bound, traits_of
from nbkit.capture.replay.reference import Reference
from nbkit.capture.replay.substitutes import SUBSTITUTES

aten = torch.ops.aten


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def by_torch(query, key, value, **options):
    """The formula of torch, and its gradients for a random one that comes in."""
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(query, key, value, **options)
    incoming = torch.randn_like(out)
    return out.detach(), incoming, torch.autograd.grad(out, (query, key, value), incoming)


def on_the_cpu(op, *args, **kwargs):
    """What the reference makes of a call of this op, whose tensors are in float32."""
    args = [one.detach().float() if isinstance(one, torch.Tensor) else one for one in args]
    return Reference("cpu:float64").copy(traits_of(op), args, kwargs).results((args, kwargs)).all


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_flash_attention(is_causal, heads, scale):
    query, key, value = drawn(2, 4, 9, 8), drawn(2, heads, 9, 8), drawn(2, heads, 9, 8)
    options = {"is_causal": is_causal, "scale": scale}
    out, incoming, gradients = by_torch(query, key, value, enable_gqa=True, **options)
    (found,) = on_the_cpu(
        aten._scaled_dot_product_flash_attention.default, query, key, value, 0.0, is_causal, scale=scale
    )
    torch.testing.assert_close(found, out, rtol=1e-5, atol=1e-5)
    rest = (out, out[..., 0], None, None, 9, 9, 0.0, is_causal, torch.zeros(2), torch.zeros(2))
    backward = aten._scaled_dot_product_flash_attention_backward.default
    given = on_the_cpu(backward, incoming, query, key, value, *rest, scale=scale)
    torch.testing.assert_close(given, list(gradients), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 4, 9, 7), (1, 1, 9, 7), (2, 1, 1, 7)])
def test_efficient_attention_with_a_bias(shape):
    query, key, value, bias = drawn(2, 4, 9, 8), drawn(2, 4, 7, 8), drawn(2, 4, 7, 8), drawn(*shape)
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    incoming = torch.randn_like(out)
    gradients = torch.autograd.grad(out, (query, key, value, bias), incoming)
    (found,) = on_the_cpu(aten._scaled_dot_product_efficient_attention.default, query, key, value, bias, True)
    torch.testing.assert_close(found, out.detach(), rtol=1e-5, atol=1e-5)
    rest = (out, out[..., 0], torch.zeros(2), torch.zeros(2), 0.0, [True] * 4)
    backward = aten._scaled_dot_product_efficient_attention_backward.default
    given = on_the_cpu(backward, incoming, query, key, value, bias, *rest)
    torch.testing.assert_close(given, list(gradients), rtol=1e-5, atol=1e-5)


def test_gradients_that_are_not_asked_for_are_left_out():
    tensors = [drawn(1, 2, 3, 4) for _ in range(3)]
    rest = (tensors[0], tensors[0][..., 0], torch.zeros(2), torch.zeros(2), 0.0, [True, False, True, False])
    op = aten._scaled_dot_product_efficient_attention_backward.default
    assert len(on_the_cpu(op, tensors[0], *tensors, None, *rest)) == 2


def test_a_row_of_which_nothing_is_seen_is_zero_as_in_torch():
    query, key, value = (drawn(1, 1, 3, 4) for _ in range(3))
    mask = torch.zeros(1, 1, 3, 3, dtype=torch.float64)
    mask[0, 0, 1] = -torch.inf
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    (found,) = on_the_cpu(aten._scaled_dot_product_efficient_attention.default, query, key, value, mask, True)
    torch.testing.assert_close(found, expected.detach(), rtol=1e-5, atol=1e-5)


def test_batch_norm_of_cudnn_and_its_gradients():
    x, incoming, weight, bias, mean, variance = (
        drawn(4, 3, 5),
        torch.randn(4, 3, 5),
        *(drawn(3).detach() for _ in range(4)),
    )
    variance = variance.abs()
    running = mean.clone(), variance.clone()
    out = F.batch_norm(x, *running, weight, bias, training=True)
    found = on_the_cpu(aten.cudnn_batch_norm.default, x, weight, bias, mean, variance, True, 0.1, 1e-5)
    torch.testing.assert_close(found[0], out.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[3:], list(running), rtol=1e-5, atol=1e-5)
    (gradient,) = torch.autograd.grad(out, x, incoming.double())
    op = aten.cudnn_batch_norm_backward.default
    given = on_the_cpu(op, x, incoming, weight, mean, variance, found[1], found[2], 1e-5, torch.zeros(0))
    torch.testing.assert_close(given[0], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("packet", [name for name in SUBSTITUTES if name not in lstm.FORMULAS])
def test_each_stands_in_for_an_op_of_torch_that_has_no_kernel_on_the_cpu(packet):
    op = getattr(aten, packet).default
    assert not torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CPU")
    assert bound(op, (), {}) is not None
