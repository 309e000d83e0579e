"""Tests the Analyzer's FLOPs against the rows that it publishes for ViT-B/16, and closed forms."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from nbkit.ops.flops.analyzer import analyzer_flops

BATCH, TOKENS, WIDTH, HIDDEN = 8, 197, 768, 3072


class Counted(TorchDispatchMode):
    """Adds up the FLOPs of all ops that run inside."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func.namespace == "aten":
            self.total += analyzer_flops(func, args, kwargs or {}, out)
        return out


def counted(step):
    with Counted() as mode:
        out = step()
    return out, mode.total


def forward_and_backward(step):
    out, forward = counted(step)
    gradient = torch.zeros_like(out)
    return forward, counted(lambda: out.backward(gradient))[1]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 12, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


def vit_b16():
    """Returns the forward pass of ViT-B/16 in plain torch."""
    patches, token = nn.Conv2d(3, WIDTH, 16, 16), nn.Parameter(torch.zeros(1, 1, WIDTH))
    position = nn.Parameter(torch.zeros(1, TOKENS, WIDTH))
    layers = nn.Sequential(*(Layer() for _ in range(12)), nn.LayerNorm(WIDTH))
    head = nn.Linear(WIDTH, 1000)

    def forward():
        x = patches(torch.zeros(BATCH, 3, 224, 224)).reshape(BATCH, WIDTH, TOKENS - 1).permute(0, 2, 1)
        return head(layers(torch.cat([token.expand(BATCH, -1, -1), x], 1) + position)[:, 0])

    return forward


def test_vit_b16_has_the_flops_of_the_published_table():
    with FakeTensorMode(), sdpa_kernel(SDPBackend.MATH):
        forward, backward = forward_and_backward(vit_b16())
    assert forward == 140_822_900_736
    # The table leaves out the sums of gradients that autograd itself adds where a tensor was taken more than once: two
    # residuals in each layer, and those of q, k and v, each with room for all three.
    assert backward == 280_511_502_272 + 12 * (2 + 2 * 3) * BATCH * TOKENS * WIDTH


@pytest.mark.parametrize(
    ("module", "shape", "forward", "backward"),
    [
        (nn.Conv2d(3, WIDTH, 16, 16), (8, 3, 224, 224), 924_844_032, 924_844_032),
        (nn.Linear(WIDTH, HIDDEN), (8, 197, WIDTH), 3_718_250_496, 3_718_250_496 + 8 * 197 * HIDDEN),
        (nn.LayerNorm(WIDTH), (8, 197, WIDTH), 6_051_840, 6_051_840),
        (nn.LayerNorm(8, bias=False), (4, 8), 5 * 32, 5 * 32),
        (nn.LayerNorm(8, elementwise_affine=False), (4, 8), 4 * 32, None),
        (nn.BatchNorm1d(8), (4, 8), 5 * 32, 5 * 32),
        (nn.BatchNorm1d(8).eval(), (4, 8), 2 * 32, 2 * 32),
        (nn.ConvTranspose1d(4, 6, 3, 2), (2, 4, 10), 2 * 4 * 6 * 3 * 10, 4 * (2 * 6 * 21) * 10),
        (nn.Sequential(nn.Flatten(), nn.Softmax(1), nn.Dropout(0.5)), (4, 8), 4 * 32, None),
        (nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2)), (2, 3, 8, 8), 2 * 3 * 64 + 2 * 3 * 16, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else None,
)
def test_a_module_counts_as_the_rules_say(module, shape, forward, backward):
    with FakeTensorMode(allow_non_fake_inputs=True):
        if backward is None:
            assert counted(lambda: module(torch.zeros(shape)))[1] == forward
        else:
            assert forward_and_backward(lambda: module(torch.zeros(shape))) == (forward, backward)


def test_the_backward_pass_of_pooling_and_of_an_embedding_counts_what_it_returns():
    image = torch.zeros(2, 3, 8, 8, requires_grad=True)
    pools = nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2))
    assert forward_and_backward(lambda: pools(image)) == (2 * 3 * 64 + 2 * 3 * 16,) * 2
    embedding = nn.Embedding(9, 4)
    assert forward_and_backward(lambda: embedding(torch.arange(5))) == (9 * 4, 9 * 4)


def test_what_its_rules_do_not_know_counts_nothing():
    x = torch.ones(2, 2)
    assert counted(lambda: (x - 1).exp().rsqrt() + torch.ones(()).neg())[1] == 4
    assert counted(lambda: x.add(1) @ torch.baddbmm(x, x.expand(1, 2, 2), x.expand(1, 2, 2))[0])[1] == 4 + 8


def test_the_backward_pass_of_the_gpus_batch_norm_counts_as_its_forward_pass_in_training():
    x, weight = torch.ones(4, 8), torch.ones(8)
    given = [x, weight, weight, weight, weight, True, 0.1, 1e-5]
    assert analyzer_flops(torch.ops.aten.cudnn_batch_norm.default, given, {}, x) == 5 * 32
    given = [x, x, weight, weight, weight, weight, weight, 1e-5, torch.ones(0)]
    assert analyzer_flops(torch.ops.aten.cudnn_batch_norm_backward.default, given, {}, (x, weight, weight)) == 5 * 32


def test_the_backward_pass_of_a_depthwise_convolution_counts_as_if_it_had_no_groups():
    net, x = nn.Conv2d(32, 32, 3, padding=1, groups=32), torch.ones(2, 32, 8, 8, requires_grad=True)
    assert forward_and_backward(lambda: net(x)) == (36_864, 1_216_512)
