"""LLaMA with split projections: half-split rotary, einsum, an additive mask of -inf, a norm written out."""

import torch
from torch import Tensor, nn


class Norm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gain, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        return x * (x * x).mean(-1, keepdim=True).add(self.eps).rsqrt() * self.gain


def half_split(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, T, H, D), tables (T, 1, D/2)
    a, b = x.tensor_split(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attend(nn.Module):
    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.size = width // heads
        self.count, self.scale, self.turned = heads // kv_heads, self.size**-0.5, half_split
        self.wq, self.wo = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.wk, self.wv = (nn.Linear(width, kv_heads * self.size, bias=False) for _ in range(2))

    def repeated(self, x: Tensor) -> Tensor:  # (B, S, K, D) -> (B, S, H, D)
        return x.repeat_interleave(self.count, 2)

    def weights(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def joined(self, mixed: Tensor) -> Tensor:  # (B, T, H, D) -> (B, T, C)
        return mixed.flatten(2)

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        v, k, q = (linear(h).unflatten(-1, (-1, self.size)) for linear in (self.wv, self.wk, self.wq))
        k, v = self.repeated(self.turned(k, cos, sin)), self.repeated(v)
        scores = torch.einsum("bthd,bshd->bhts", self.turned(q, cos, sin), k) * self.scale
        mixed = torch.einsum("bhts,bshd->bthd", self.weights(scores + hidden), v)
        return self.wo(self.joined(mixed))


class Feed(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.w1, self.w3 = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.w2 = nn.Linear(inner, width, bias=False)

    def activated(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)

    def forward(self, h: Tensor) -> Tensor:
        return self.w2(self.w3(h) * self.activated(self.w1(h)))


class Block(nn.Module):
    def __init__(self, width: int, inner: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.first, self.second = Norm(width), Norm(width)
        self.attend, self.feed = Attend(width, heads, kv_heads), Feed(width, inner)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor) -> Tensor:
        x = x + self.attend(self.first(x), cos, sin, hidden)
        return x + self.feed(self.second(x))


class PlainLlama(nn.Module):
    def __init__(self, vocabulary: int, width: int, inner: int, heads: int, kv_heads: int, layers: int) -> None:
        super().__init__()
        self.size, self.theta, self.diagonal, self.fill = width // heads, 10_000.0, 1, float("-inf")
        self.table = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, inner, heads, kv_heads) for _ in range(layers))
        self.last, self.out = Norm(width), nn.Linear(width, vocabulary, bias=False)

    def angles(self, length: int) -> Tensor:  # (T, 1, D/2)
        frequencies = self.theta ** (torch.arange(0, -self.size, -2).float() / self.size)
        return torch.outer(torch.arange(length).float(), frequencies)[:, None]

    def hidden(self, length: int, attention_mask: Tensor | None) -> Tensor:  # (T, S) or (B, 1, T, S)
        later = torch.ones(length, length).triu(self.diagonal).bool()
        if attention_mask is not None:
            later = later | (attention_mask == 0)[:, None, None]
        return torch.zeros(later.shape).masked_fill(later, self.fill)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        angles = self.angles(input_ids.shape[1])
        hidden = self.hidden(input_ids.shape[1], attention_mask)
        x = self.table(input_ids)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin(), hidden)
        return self.out(self.last(x))


NAMES = {  # those of transformers
    "table": "model.embed_tokens",
    "blocks": "model.layers",
    "first": "input_layernorm",
    "second": "post_attention_layernorm",
    "attend": "self_attn",
    "feed": "mlp",
    "last": "model.norm",
    "out": "lm_head",
    "gain": "weight",
    "wq": "q_proj",
    "wk": "k_proj",
    "wv": "v_proj",
    "wo": "o_proj",
    "w1": "gate_proj",
    "w2": "down_proj",
    "w3": "up_proj",
}
