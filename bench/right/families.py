"""Training steps of families of models, written by hand: networks of sound, graphs, sets, sequences, experts."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.right.registry import Step, right, trained


@right("graph convolution by index_add, float32")
def graph_convolution() -> Step:
    first, second = nn.Linear(8, 16), nn.Linear(16, 3)
    x, labels = torch.randn(20, 8), torch.randint(0, 3, (20,))
    ends = torch.randint(0, 20, (2, 60))
    degree = torch.ones(20).index_add(0, ends[1], torch.ones(60))

    def spread(h: Tensor) -> Tensor:
        return (h + torch.zeros_like(h).index_add(0, ends[1], h[ends[0]])) / degree[:, None]

    model = nn.ModuleList([first, second])
    return trained(model, lambda _: F.cross_entropy(spread(second(F.relu(spread(first(x))))), labels))


@right("deep sets with a mask, autocast")
def deep_sets() -> Step:
    model = nn.ModuleDict({"each": nn.Sequential(nn.Linear(4, 16), nn.GELU()), "whole": nn.Linear(16, 1)})
    x, present, y = torch.randn(8, 10, 4), torch.rand(8, 10) > 0.3, torch.randn(8, 1)

    def loss(m: nn.Module) -> Tensor:
        each = m["each"](x).masked_fill(~present[..., None], 0)  # type: ignore[index]
        return F.mse_loss(m["whole"](each.sum(1) / present.sum(1, keepdim=True).clamp(min=1)).float(), y)  # type: ignore[index]

    return trained(model, loss, "autocast")


class Dilated(nn.Module):
    """Convolutions over time, each with twice the dilation of the one before, causal."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(1 if not n else 8, 8, 2, dilation=2**n) for n in range(3))
        self.out = nn.Conv1d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for number, layer in enumerate(self.layers):
            h = F.gelu(layer(F.pad(h, (2**number, 0))))
        return self.out(h)


@right("dilated convolutions of sound with a spectral loss, float32")
def sound() -> Step:
    window = torch.hann_window(64)

    def spectrum(x: Tensor) -> Tensor:
        return torch.stft(x.squeeze(1), 64, 32, window=window, return_complex=True).abs()

    def loss(m: nn.Module) -> Tensor:
        clean = torch.sin(torch.arange(256) * (0.05 + torch.rand(4, 1)))[:, None]
        made = m(clean + 0.1 * torch.randn_like(clean))
        return F.l1_loss(made, clean) + F.l1_loss(spectrum(made), spectrum(clean))

    return trained(Dilated(), loss)


class Translator(nn.Module):
    """A recurrent encoder and a decoder that looks back at it, fed with what it is to say."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.encode = nn.Embedding(50, 16), nn.GRU(16, 16, batch_first=True)
        self.decode, self.out = nn.GRUCell(32, 16), nn.Linear(16, 50)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, last = self.encode(self.tokens(source))
        state, logits = last[0], []
        for word in self.tokens(target).unbind(1):
            seen = (memory @ state[:, :, None]).softmax(1)
            state = self.decode(torch.cat([word, (memory * seen).sum(1)], 1), state)
            logits.append(self.out(state))
        return torch.stack(logits, 1)


@right("recurrent translation with attention, float32")
def translation() -> Step:
    source, target = torch.randint(0, 50, (6, 7)), torch.randint(0, 50, (6, 6))

    def loss(m: nn.Module) -> Tensor:
        return F.cross_entropy(m(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())

    return trained(Translator(), loss)


class Experts(nn.Module):
    """Two of four experts for each row, by their gates, with a loss that balances them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16)) for _ in range(4))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shares = self.gate(x).softmax(-1)
        weights, chosen = shares.topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, slot = (chosen == number).nonzero(as_tuple=True)
            out = out.index_add(0, rows, (expert(x[rows]) * weights[rows, slot, None]).to(out.dtype))
        load = F.one_hot(chosen, 4).to(x.dtype).mean((0, 1))
        return out, 4 * (load * shares.mean(0)).sum()


def experts(kind: str) -> Step:
    def loss(m: nn.Module) -> Tensor:
        x = torch.randn(64, 16, dtype=next(model.parameters()).dtype)
        made, balance = m(x)
        return F.mse_loss(made, x.roll(1, 1)) + 0.01 * balance

    model = Experts()
    return trained(model, loss, kind)


right("experts by top-2 gates, float32")(lambda: experts("float32"))
right("experts by top-2 gates, bfloat16")(lambda: experts("bfloat16"))


@right("a field of coordinates with Fourier features, float32")
def field() -> Step:
    waves = torch.randn(2, 32) * 4
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3), nn.Sigmoid())

    def loss(m: nn.Module) -> Tensor:
        at = torch.rand(256, 2)
        return F.mse_loss(m(torch.cat([(at @ waves).sin(), (at @ waves).cos()], 1)), torch.cat([at, at[:, :1]], 1))

    return trained(model, loss, rate=1e-3)


@right("depthwise separable convolutions, channels_last, bfloat16")
def separable() -> Step:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.Conv2d(16, 32, 1), nn.GroupNorm(4, 32), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5),
    ).to(memory_format=torch.channels_last)  # fmt: skip
    x = torch.randn(8, 3, 16, 16, dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 5, (8,))
    return trained(model, lambda m: F.cross_entropy(m(x), labels), "bfloat16")


@right("spectral and weight norms, float32")
def parametrized() -> Step:
    norms = torch.nn.utils.parametrizations
    model = nn.Sequential(norms.spectral_norm(nn.Linear(8, 16)), nn.Tanh(), norms.weight_norm(nn.Linear(16, 1)))
    x = torch.randn(32, 8)
    return trained(model, lambda m: F.mse_loss(m(x), x.mean(1, keepdim=True)))


@right("an equation solved by Runge-Kutta steps, compiled")
def ordinary_equation() -> Step:
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    start = torch.randn(16, 2)

    def loss(m: nn.Module) -> Tensor:
        x = start
        for _ in range(4):
            half = x + 0.05 * m(x)
            x = x + 0.1 * m(half)
        return F.mse_loss(x, torch.stack([start[:, 1], -start[:, 0]], 1))

    return trained(model, loss, "compiled")


@right("a transformer of torch with a checkpoint, autocast")
def checkpointed() -> Step:
    from torch.utils.checkpoint import checkpoint

    layers = nn.ModuleList(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.1) for _ in range(2))

    def loss(_: nn.Module) -> Tensor:
        x = torch.randn(4, 6, 16)
        h = x
        for layer in layers:
            h = checkpoint(layer, h, use_reentrant=False)
        return F.mse_loss(h.float(), x.roll(1, 1))

    return trained(layers, loss, "autocast")
