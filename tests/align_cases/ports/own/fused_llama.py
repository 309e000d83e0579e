"""LLaMA with fused projections, q|k|v and gate|up in one weight each, and attention as a batched product."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.align_cases.ports.own.plain_llama import Norm


class FusedAttention(nn.Module):
    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.sizes = [width, kv_heads * self.size, kv_heads * self.size]
        self.qkv, self.proj = nn.Linear(width, sum(self.sizes), bias=False), nn.Linear(width, width, bias=False)

    def turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, H, T, D), tables (T, D)
        return x * cos + x.roll(self.size // 2, -1) * sin

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (-1, self.size)).transpose(1, 2) for part in self.qkv(h).split(self.sizes, -1))
        k, v = (x.repeat_interleave(self.heads // x.shape[1], 1) for x in (self.turned(k, cos, sin), v))
        q, k, v = (x.flatten(0, 1) for x in (self.turned(q, cos, sin) / self.size**0.5, k, v))
        allowed = torch.ones(h.shape[1], h.shape[1], dtype=torch.bool).tril()
        scores = torch.where(allowed, torch.bmm(q, k.mT), torch.finfo(q.dtype).min)
        mixed = torch.bmm(torch.softmax(scores, 2), v).unflatten(0, (-1, self.heads))
        return self.proj(mixed.permute(0, 2, 1, 3).reshape(h.shape))


class FusedFeed(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)

    def halves(self, h: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = self.gate_up(h).chunk(2, -1)
        return gate, up

    def forward(self, h: Tensor) -> Tensor:
        gate, up = self.halves(h)
        return self.down(up * F.silu(gate))


class FusedBlock(nn.Module):
    def __init__(self, width: int, inner: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.n1, self.attn = Norm(width), FusedAttention(width, heads, kv_heads)
        self.n2, self.mlp = Norm(width), FusedFeed(width, inner)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = self.attn(self.n1(x), cos, sin) + x
        return self.mlp(self.n2(x)) + x


class FusedLlama(nn.Module):
    def __init__(self, vocabulary: int, width: int, inner: int, heads: int, kv_heads: int, layers: int) -> None:
        super().__init__()
        self.size = width // heads
        self.emb = nn.Embedding(vocabulary, width)
        self.h = nn.ModuleList(FusedBlock(width, inner, heads, kv_heads) for _ in range(layers))
        self.norm, self.head = Norm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        powers = torch.arange(self.size // 2) * (-2 / self.size)
        angles = torch.arange(tokens.shape[1])[:, None] * torch.pow(10_000.0, powers)
        sin = torch.cat((-angles.sin(), angles.sin()), 1)  # roll() moves the second half in front, without a sign
        cos = angles.cos().repeat(1, 2)
        x = self.emb(tokens)
        for block in self.h:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


PARTS = {"qkv": ("q_proj", "k_proj", "v_proj"), "gate_up": ("gate_proj", "up_proj")}
NAMES = {  # those of transformers
    "emb": "model.embed_tokens",
    "h": "model.layers",
    "n1": "input_layernorm",
    "n2": "post_attention_layernorm",
    "attn": "self_attn",
    "norm": "model.norm",
    "head": "lm_head",
    "gain": "weight",
    "proj": "o_proj",
    "down": "down_proj",
}
