"""Gemma: scaled embeddings, norms that add 1 to their gain, one key/value head for all, a tied head."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class UnitNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.delta, self.eps, self.offset = nn.Parameter(torch.zeros(width)), eps, 1

    def forward(self, x: Tensor) -> Tensor:
        size = x.square().mean(-1, keepdim=True)
        return x / (size + self.eps).sqrt() * (self.delta + self.offset)


class Layer(nn.Module):
    """Attends in its own forward; the feed-forward network is a sequence of modules around a product."""

    def __init__(self, width: int, inner: int, heads: int) -> None:
        super().__init__()
        self.size = width // heads
        self.norm_1, self.norm_2 = UnitNorm(width), UnitNorm(width)
        self.query, self.merge = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.both = nn.Linear(width, 2 * self.size, bias=False)
        self.gate, self.lift = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.lower, self.act = nn.Linear(inner, width, bias=False), nn.GELU(approximate="tanh")

    def attended(self, h: Tensor, turns: Tensor) -> Tensor:
        q, (k, v) = self.query(h).unflatten(-1, (-1, self.size)), self.both(h).chunk(2, -1)
        q, k = turned(q, turns[:, None]), turned(k, turns)
        scores = torch.einsum("bthd,bsd->bhts", q, k) / math.sqrt(self.size)
        later = torch.arange(h.shape[1])[:, None] < torch.arange(h.shape[1])
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), -1)
        return self.merge(torch.einsum("bhts,bsd->bthd", weights, v).flatten(2))

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        x = x + self.attended(self.norm_1(x), turns)
        h = self.norm_2(x)
        return x + self.lower(self.act(self.gate(h)) * self.lift(h))


def turned(x: Tensor, turns: Tensor) -> Tensor:  # (..., D), turns (..., D/2) complex
    half = torch.complex(*x.chunk(2, -1)) * turns
    return torch.cat((half.real, half.imag), -1)


class OwnGemma(nn.Module):
    def __init__(self, vocabulary: int, width: int, inner: int, heads: int, layers: int) -> None:
        super().__init__()
        self.size, self.scale = width // heads, width**0.5
        self.wte = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, inner, heads) for _ in range(layers))
        self.norm_f = UnitNorm(width)

    def logits(self, x: Tensor) -> Tensor:
        return torch.einsum("btc,vc->btv", x, self.wte.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        steps = torch.arange(0, self.size, 2) / self.size
        angles = torch.arange(tokens.shape[1])[:, None] * 10_000.0**-steps
        x = F.embedding(tokens, self.wte.weight) * self.scale
        for layer in self.layers:
            x = layer(x, torch.exp(1j * angles))
        return self.logits(self.norm_f(x))


PARTS = {"both": ("k_proj", "v_proj")}
NAMES = {  # those of transformers
    "wte": "model.embed_tokens",
    "layers": "model.layers",
    "norm_1": "input_layernorm",
    "norm_2": "post_attention_layernorm",
    "norm_f": "model.norm",
    "delta": "weight",
    "query": "self_attn.q_proj",
    "both": "self_attn.both",
    "merge": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "lift": "mlp.up_proj",
    "lower": "mlp.down_proj",
}
