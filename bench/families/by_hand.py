"""Correct models written by hand, of families that no test of the repository has."""

import itertools
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.families.inputs import Family, Loss, drawn, ids


class Spectral(nn.Module):
    """Mixes by fast Fourier transforms, as FNet and FNO do."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Parameter(torch.randn(9, 16, 2))
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:  # (B, 16, 16) -> (B, 3)
        waves = torch.fft.rfft(x.float(), dim=1) * torch.view_as_complex(self.filter.float())
        return self.head(torch.fft.irfft(waves, n=16, dim=1).to(x.dtype).mean(1))


class Graph(nn.Module):
    """Messages along edges: gather, scatter_add, softmax over neighbors, a mean by index_add."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.score, self.head = nn.Linear(8, 8), nn.Linear(16, 1), nn.Linear(8, 3)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:  # (N, 8), (2, E) -> (N, 3)
        source, target = edges
        scores = self.score(torch.cat([x[source], x[target]], 1)).squeeze(1)
        weights = (scores - scores.max()).exp()
        total = torch.zeros(len(x), dtype=weights.dtype).scatter_add(0, target, weights)
        sent = self.message(x[source]).to(weights.dtype) * (weights / total[target])[:, None]
        return self.head(torch.zeros(len(x), 8, dtype=sent.dtype).index_add(0, target, sent).to(x.dtype).relu())


class Flow(nn.Module):
    """Affine couplings with the logarithm of their determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 6)) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:  # (B, 6) -> (B)
        log_determinant = x.new_zeros(len(x))
        for net in self.nets:
            first, second = x.chunk(2, 1)
            scale, shift = net(first).chunk(2, 1)
            x = torch.cat([second * scale.tanh().exp() + shift, first], 1)
            log_determinant = log_determinant + scale.tanh().sum(1)
        return (x.square().sum(1) / 2 - log_determinant).mean()


def by_hand(make: Callable[[], nn.Module], loss: Callable[[nn.Module], Tensor]) -> Family:
    def family() -> tuple[nn.Module, Loss]:
        torch.manual_seed(0)
        model = make()

        def run() -> Tensor:
            torch.manual_seed(1)
            return loss(model)

        return model, run

    return family


def mlp(*sizes: int, act: type[nn.Module] = nn.Tanh) -> nn.Sequential:
    layers: list[nn.Module] = []
    for one, following in itertools.pairwise(sizes):
        layers += [nn.Linear(one, following), act()]
    return nn.Sequential(*layers[:-1])


def ctc(model: nn.Module) -> Tensor:
    out = model[1](model[0](drawn(20, 3, 8, like=model))[0])
    return F.ctc_loss(out.float().log_softmax(-1), torch.randint(1, 11, (3, 6)), [20, 18, 15], [6, 5, 4])


def pinn(model: nn.Module) -> Tensor:
    """The residual of u'' + u, and the second derivatives that it takes."""
    x = drawn(32, 1, like=model).requires_grad_()
    u = model(x)
    (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
    return (bend + u).square().mean()


def penalty(model: nn.Module) -> Tensor:
    """A critic's loss with the penalty on the norm of its gradient."""
    x = drawn(16, 5, like=model).requires_grad_()
    out = model(x).sum()
    (slope,) = torch.autograd.grad(out, x, create_graph=True)
    return out / 16 + (slope.norm(dim=1) - 1).square().mean()


def linear_algebra(model: nn.Module) -> Tensor:
    a = model(drawn(4, 6, like=model)).float().reshape(4, 6, 6)
    spd = a @ a.mT + torch.eye(6)
    root = torch.linalg.cholesky(spd)
    return (
        torch.linalg.solve(spd, a).square().mean()
        + torch.linalg.slogdet(spd)[1].mean()
        + torch.linalg.qr(root)[1].abs().mean()
    )


def learned_by_heart(model: nn.Module) -> Tensor:
    return F.cross_entropy(model(drawn(64, 10, like=model)) * 40, torch.arange(64) % 5)


def convolutions(model: nn.Module) -> Tensor:
    return model(drawn(2, 3, 16, 16, like=model)).square().mean()


BY_HAND: dict[str, Family] = {
    "Fourier transforms": by_hand(Spectral, lambda model: model(drawn(4, 16, 16, like=model)).square().mean()),
    "messages in a graph": by_hand(
        Graph, lambda model: model(drawn(20, 8, like=model), torch.randint(20, (2, 60))).square().mean()
    ),
    "a flow": by_hand(Flow, lambda model: model(drawn(16, 6, like=model))),
    "CTC over a bidirectional LSTM": by_hand(
        lambda: nn.Sequential(nn.LSTM(8, 12, 2, bidirectional=True), nn.Linear(24, 11)), ctc
    ),
    "PINN, second derivatives": by_hand(lambda: mlp(1, 16, 16, 1), pinn),
    "penalty on a gradient": by_hand(lambda: mlp(5, 16, 16, 1, act=nn.SiLU), penalty),
    "linear algebra": by_hand(lambda: mlp(6, 16, 36), linear_algebra),
    "samples known by heart": by_hand(lambda: mlp(10, 32, 5), learned_by_heart),
    "GRU": by_hand(lambda: nn.GRU(7, 9, 2), lambda model: model(drawn(12, 3, 7, like=model))[0].square().mean()),
    "U-Net": by_hand(
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(),
            nn.Conv2d(8, 12, 3, 2, 1), nn.InstanceNorm2d(12), nn.ReLU(),
            nn.ConvTranspose2d(12, 6, 4, 2, 1), nn.PReLU(6), nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.Conv2d(6, 4, 3, padding=2, dilation=2, groups=2), nn.MaxPool2d(2), nn.PixelShuffle(2),
            nn.AdaptiveAvgPool2d(5),
        ),
        convolutions,
    ),
    "1,500 rows of LayerNorm": by_hand(
        lambda: nn.Sequential(nn.Linear(8, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 4)),
        lambda model: model(drawn(3, 500, 8, like=model)).square().mean(),
    ),
    "embedding bags and distances": by_hand(
        lambda: nn.EmbeddingBag(50, 8, mode="mean"),
        lambda model: torch.cdist(model(ids(6, 5) % 50).float(), torch.randn(4, 8)).mean(),
    ),
    "attention with dropout": by_hand(
        lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.2, batch_first=True),
        lambda model: model(drawn(2, 9, 16, like=model)).square().mean(),
    ),
    "a loss of each kind": by_hand(
        lambda: mlp(6, 16, 8),
        lambda model: sum(losses(model(drawn(12, 6, like=model)))),
    ),
    "cumulative sums, sorting, quantiles": by_hand(
        lambda: mlp(6, 16, 8),
        lambda model: sum(orders(model(drawn(12, 6, like=model)))),
    ),
}  # fmt: skip


def losses(out: Tensor) -> Iterable[Tensor]:
    target, classes = torch.rand_like(out), torch.arange(len(out)) % out.shape[1]
    yield F.huber_loss(out, target)
    yield F.smooth_l1_loss(out, target)
    yield F.binary_cross_entropy_with_logits(out, target)
    yield F.multi_margin_loss(out.float(), classes)
    yield F.kl_div(out.log_softmax(1), target.softmax(1), reduction="batchmean")
    yield F.cosine_embedding_loss(out, target, torch.ones(len(out)))
    yield F.triplet_margin_loss(out, target, out.detach().flip(0))
    yield F.poisson_nll_loss(out, target)
    yield F.gaussian_nll_loss(out, target, F.softplus(out) + 1)
    yield F.cross_entropy(out, classes, label_smoothing=0.1)


def orders(out: Tensor) -> Iterable[Tensor]:
    wide = out.float()
    yield out.cumsum(0).mean()
    yield wide.cumprod(1).mean()
    yield out.logcumsumexp(0).mean()
    yield out.sort(1)[0][:, 2].mean()
    yield out.topk(3, 1)[0].mean()
    yield wide.quantile(0.3, 1).mean()
    yield torch.stack([out.median(), out.amax(), out.var(), out.norm(), wide.logsumexp((0, 1))]).float().mean()
    yield out.unfold(1, 3, 2).prod(-1).mean()
