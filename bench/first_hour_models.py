"""Six training steps as people write them, of models that nbkit's tests do not have: those of `first_hour.py`."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Step:
    """A model, arguments of a call, its training step, and the rule that names its mistake, if it has one."""

    model: nn.Module
    inputs: tuple[Tensor, ...]
    train: Callable[[], float]
    mistake: str | None = None


def trained(
    model: nn.Module, inputs: tuple[Tensor, ...], loss: Callable[[], Tensor], mistake: str | None = None
) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def train() -> float:
        value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value.item()

    return Step(model, inputs, train, mistake)


def gpt2() -> Step:
    """GPT-2 of transformers with four layers, its dropout on."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=500, bos_token_id=0, eos_token_id=0, n_positions=64, n_embd=128, n_layer=4, n_head=4, use_cache=False
    )
    model = GPT2LMHeadModel(config)
    ids = torch.randint(0, 500, (2, 48))
    return trained(model, (ids,), lambda: model(ids, labels=ids).loss)


class Residual(nn.Module):
    def __init__(self, width: int, stride: int) -> None:
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(width // stride, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.c2, self.n2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.skip = nn.Conv2d(width // stride, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.n2(self.c2(F.relu(self.n1(self.c1(x))))) + self.skip(x))


def resnet() -> Step:
    """A ResNet under bfloat16 autocast."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1), Residual(16, 1), Residual(32, 2), Residual(64, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    images, labels = torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))

    def loss() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return F.cross_entropy(model(images), labels)

    return trained(model, (images,), loss)


class TimeMix(nn.Module):
    """Mixes over time as RWKV-4 does, with a loop over the positions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.receptance = nn.LayerNorm(width), nn.Linear(width, width)
        self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(3))
        self.decay, self.bonus = nn.Parameter(torch.linspace(-3, 1, width)), nn.Parameter(torch.full((width,), 0.3))

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C)
        y = self.norm(x)
        r, k, v = self.receptance(y).sigmoid(), self.key(y), self.value(y)
        w = -self.decay.exp()
        above = below = torch.zeros_like(x[:, 0])
        largest = torch.full_like(above, -1e38)
        mixed = []
        for t in range(x.shape[1]):
            q = torch.maximum(largest, self.bonus + k[:, t])
            old, new = (largest - q).exp(), (self.bonus + k[:, t] - q).exp()
            mixed.append((old * above + new * v[:, t]) / (old * below + new))
            q = torch.maximum(largest + w, k[:, t])
            old, new = (largest + w - q).exp(), (k[:, t] - q).exp()
            above, below, largest = old * above + new * v[:, t], old * below + new, q
        return x + self.out(r * torch.stack(mixed, 1))


class ChannelMix(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.key, self.value = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.value(self.key(self.norm(x)).relu().square())


def rwkv() -> Step:
    """An RWKV whose time mix is a loop in Python."""
    width, words = 64, 100
    blocks = [mix for _ in range(3) for mix in (TimeMix(width), ChannelMix(width))]
    model = nn.Sequential(nn.Embedding(words, width), *blocks, nn.LayerNorm(width), nn.Linear(width, words))
    ids = torch.randint(0, words, (2, 65))
    return trained(
        model, (ids[:, :-1],), lambda: F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    )


class Experts(nn.Module):
    """Sends each token to its two best experts and adds what they say."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(count)
        )

    def forward(self, x: Tensor) -> Tensor:  # (N, C)
        weights, chosen = self.router(x).softmax(-1).topk(2)
        weights = weights / weights.sum(-1, keepdim=True)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(chosen == number)
            result.index_add_(0, token, expert(x[token]) * weights[token, place, None])
        return result


class CausalBlock(nn.Module):
    def __init__(self, width: int, feed: nn.Module, hides: Callable[[int], Tensor]) -> None:
        super().__init__()
        self.n1, self.n2, self.feed, self.hides = nn.LayerNorm(width), nn.LayerNorm(width), feed, hides
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.n1(x)
        x = x + self.attention(y, y, y, attn_mask=self.hides(x.shape[1]), need_weights=False)[0]
        return x + self.feed(self.n2(x).flatten(0, 1)).view_as(x)


def future(length: int) -> Tensor:
    return torch.full((length, length), -torch.inf).triu(1)


def mixture_of_experts() -> Step:
    """A mixture of experts: the shapes of its ops depend on what the router says."""
    width, words = 64, 200
    model = nn.Sequential(
        nn.Embedding(words, width),
        *(CausalBlock(width, Experts(width, 8), future) for _ in range(3)),
        nn.Linear(width, words),
    )
    ids = torch.randint(0, words, (2, 33))
    return trained(
        model, (ids[:, :-1],), lambda: F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    )


class Translator(nn.Module):
    """nn.Transformer with its masks; a number that it reads breaks the graph."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(60, width), nn.Linear(width, 60)
        self.transformer = nn.Transformer(width, 2, 2, 2, 64, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        y = self.transformer(self.words(source), self.words(target), tgt_mask=mask)
        scale = 1.0 if y.abs().max().item() > 0 else 2.0
        return self.head(y * scale)


def compiled() -> Step:
    """An nn.Transformer behind torch.compile, with one break of its graph."""
    model = Translator()
    run = torch.compile(model)
    source, target = torch.randint(0, 60, (4, 10)), torch.randint(0, 60, (4, 13))
    inputs = (source, target[:, :-1])
    return trained(model, inputs, lambda: F.cross_entropy(run(*inputs).flatten(0, 1), target[:, 1:].flatten()))


class InvertedMask(nn.Module):
    """An encoder with a causal mask the wrong way round: what is added hides what a position may see."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(50, 32), nn.Linear(32, 50)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids: Tensor) -> Tensor:
        mask = torch.ones(ids.shape[1], ids.shape[1]).tril() * -1e9
        return self.head(self.encoder(self.words(ids), mask=mask))


def inverted_mask() -> Step:
    """An encoder whose mask hides what a position may see, and shows what it may not."""
    model = InvertedMask()
    ids = torch.randint(0, 50, (4, 17))
    return trained(
        model,
        (ids[:, :-1],),
        lambda: F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()),
        "hidden_diagonal",
    )


MODELS: dict[str, Callable[[], Step]] = {
    "GPT-2": gpt2,
    "ResNet, autocast": resnet,
    "RWKV, time loop": rwkv,
    "mixture of experts": mixture_of_experts,
    "compiled": compiled,
    "inverted mask": inverted_mask,
}
