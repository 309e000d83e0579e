"""GPT-2 with linear layers: its norm written out, queries divided before the product, a boolean mask, a tied head."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Normed(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.g, self.b, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), 1e-5

    def forward(self, x: Tensor) -> Tensor:
        centered = x - x.mean(-1, keepdim=True)
        return centered / torch.sqrt((centered**2).mean(-1, keepdim=True) + self.eps) * self.g + self.b


class Mix(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.divisor, self.diagonal = heads, (width // heads) ** 0.5, 0
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        allowed = torch.ones(q.shape[2], k.shape[2]).tril(self.diagonal) > 0
        return (q / self.divisor @ k.transpose(-2, -1)).masked_fill(~allowed, torch.finfo(q.dtype).min)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(2, (self.heads, -1)).permute(0, 2, 1, 3) for part in self.qkv(x).chunk(3, -1))
        return self.out((F.softmax(self.scores(q, k), -1) @ v).permute(0, 2, 1, 3).flatten(2))


class Perceptron(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down, self.approximate = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), "tanh"

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x), approximate=self.approximate))


class Stage(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_mix, self.mix = Normed(width), Mix(width, heads)
        self.before_net, self.net = Normed(width), Perceptron(width)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.add(self.mix(self.before_mix(x)), x)
        return torch.add(self.net(self.before_net(x)), x)


class OwnGPT2(nn.Module):
    def __init__(self, vocabulary: int, positions: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.stack = nn.Sequential(*(Stage(width, heads) for _ in range(layers)))
        self.closing, self.first_place = Normed(width), 0

    def head(self, x: Tensor) -> Tensor:
        return F.linear(x, self.tokens.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(self.first_place, self.first_place + tokens.shape[1]).expand_as(tokens)
        return self.head(self.closing(self.stack(self.places(places) + self.tokens(tokens))))


NAMES = {  # those of transformers
    "tokens": "transformer.wte",
    "places": "transformer.wpe",
    "stack": "transformer.h",
    "closing": "transformer.ln_f",
    "before_mix": "ln_1",
    "before_net": "ln_2",
    "mix": "attn",
    "qkv": "c_attn",
    "out": "c_proj",
    "net": "mlp",
    "up": "c_fc",
    "down": "c_proj",
    "g": "weight",
    "b": "bias",
}
