"""Builds small nets of plain torch beside the FLOPs that follow from their sizes, by hand."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY
from tests.ops.flops.families import Flops, attention, fused_attention, linear, product


class Net(NamedTuple):
    """Holds a net, what it takes, and its FLOPs by hand."""

    make: Callable[[], nn.Module]
    flops: Flops
    inputs: Callable[[], Tensor]


def of(count: int) -> Flops:
    """Returns so many multiply-adds of inputs that need no gradient: forward, and for the gradient of the weights."""
    return Flops(2 * count, 2 * count)


class Residual(nn.Module):
    """Two convolutions of 3 x 3 around which a strided one of 1 x 1 leads."""

    def __init__(self, taken: int, given: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(taken, given, 3, stride, 1, bias=False), nn.BatchNorm2d(given), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(given, given, 3, 1, 1, bias=False), nn.BatchNorm2d(given))
        self.short = nn.Conv2d(taken, given, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(self.first(x)) + self.short(x))


def resnet() -> nn.Module:
    stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    return nn.Sequential(stem, Residual(8, 8, 1), Residual(8, 16, 2), head)


def mobilenet() -> nn.Module:
    """Returns grouped and depthwise convolutions, and those of one position."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.BatchNorm2d(8), nn.ReLU6(),
        nn.Conv2d(8, 16, 1), nn.Conv2d(16, 16, 3, 2, 1, groups=4), nn.GroupNorm(4, 16), nn.Flatten(),
        nn.Linear(256, 10),
    )  # fmt: skip


class UNet(nn.Module):
    """Halves an image, doubles it by a transposed convolution and by interpolation, and adds it to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inward, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 2, 2)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(24, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.silu(self.inward(x))
        low = F.instance_norm(F.silu(self.down(x)))
        wide = F.interpolate(low, scale_factor=2.0, mode="bilinear")
        return self.out(torch.cat([x + self.up(low), wide], 1))


class Experts(nn.Module):
    """Each token takes the best of four experts, all of which see it, weighted by a router."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(16, 4)
        self.first, self.second = nn.Parameter(torch.ones(4, 16, 32)), nn.Parameter(torch.ones(4, 32, 16))

    def forward(self, x: Tensor) -> Tensor:  # (N, 16)
        weights, chosen = self.router(x).softmax(-1).topk(2)
        gates = torch.zeros(len(x), 4).scatter_add(1, chosen, weights)
        hidden = F.gelu(torch.einsum("nd,edh->enh", x, self.first))
        return torch.einsum("enh,ehd,ne->nd", hidden, self.second, gates)


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.words, self.layer, self.head = nn.Embedding(20, 12), layer, nn.Linear(width, 5)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.layer(self.words(ids))[0][:, -1])


class Ranking(nn.Module):
    """Scores pairs of bags of words by a bilinear form and their distances."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.form = nn.EmbeddingBag(20, 8), nn.Linear(8, 8, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        bags = self.words(ids)
        return self.form(bags) @ bags.t() - torch.cdist(bags, bags, compute_mode="donot_use_mm_for_euclid_dist")


def _ids(batch: int, tokens: int) -> Callable[[], Tensor]:
    return lambda: torch.ones(batch, tokens, dtype=torch.long)


def _image(size: int) -> Callable[[], Tensor]:
    return lambda: torch.ones(2, 3, size, size)


L, R = LLAMA_TINY, RWKV4_TINY
KEYS = L.num_key_value_heads * L.head_dim
GRU_STEP, GRU_TOP = 4 * 3 * 16 * (12 + 16), 4 * 3 * 16 * (16 + 16)
NETS = {
    "resnet": Net(
        resnet,
        of(2 * 16 * 16 * 8 * 3 * 49)
        + product(2 * 64 * (8 * 8 * 9 * 2 + 8 * 8))
        + product(2 * 16 * (8 * 16 * 9 + 16 * 16 * 9 + 8 * 16))
        + linear(2, (16, 10)),
        _image(32),
    ),
    "mobilenet": Net(
        mobilenet,
        of(2 * 64 * 8 * 3 * 9)
        + product(2 * 64 * 8 * 9)
        + product(2 * 64 * 8 * 16)
        + product(2 * 16 * 16 * 4 * 9)
        + linear(2, (256, 10)),
        _image(16),
    ),
    "unet": Net(
        UNet,
        of(2 * 64 * 3 * 8 * 9)
        + product(2 * 16 * 8 * 16 * 4)
        + product(2 * 16 * 16 * 8 * 4)
        + product(2 * 64 * 24 * 2 * 9),
        _image(8),
    ),
    "experts": Net(
        Experts,
        # Tokens need no gradient; what leads back to the router is a product for each hidden channel.
        of(6 * 16 * 4) + of(4 * 6 * 16 * 32) + product(4 * 6 * 32 * 16) + product(4 * 6 * 16),
        lambda: torch.ones(6, 16),
    ),
    "gru": Net(
        lambda: Recurrent(nn.GRU(12, 16, 2, batch_first=True), 16),
        # The first state of each layer is zeros that need no gradient.
        product(7 * GRU_STEP) + product(7 * GRU_TOP) + Flops(0, -2 * 2 * 4 * 3 * 16 * 16) + linear(4, (16, 5)),
        _ids(4, 7),
    ),
    "lstm": Net(
        lambda: Recurrent(nn.LSTM(12, 16, 2, batch_first=True, bidirectional=True), 32),
        product(2 * 4 * 7 * 4 * 16 * (12 + 16)) + product(2 * 4 * 7 * 4 * 16 * (32 + 16)) + linear(4, (32, 5)),
        _ids(4, 7),
    ),
    "transformer": Net(
        lambda: nn.Sequential(
            nn.Embedding(20, 16), nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), nn.Linear(16, 20)
        ),
        linear(12, (16, 48), (16, 16), (16, 32), (32, 16), (16, 20)) + attention(2, 4, 6, 6, 4),
        _ids(2, 6),
    ),
    "ranking": Net(Ranking, linear(6, (8, 8)) + product(6 * 6 * 8), _ids(6, 3)),
    "sample llama": Net(
        lambda: Llama(L),
        (
            linear(12, (32, 32), (32, KEYS), (32, KEYS), (32, 32), (32, 88), (32, 88), (88, 32))
            + fused_attention(2, 4, 6, 6, 8)
        )
        * L.num_hidden_layers
        + linear(12, (32, 96)),
        _ids(2, 6),
    ),
    "sample rwkv4": Net(
        lambda: RWKV4(R),
        linear(12, *[(32, 32)] * 5, (32, 128), (128, 32)) * R.layers
        + linear(12, (32, 96), (32, 16), (32, 16))
        + product(2 * 6 * 6 * 16)
        + of(2 * 6 * 6 * 96),  # the words themselves need no gradient
        _ids(2, 6),
    ),
}
