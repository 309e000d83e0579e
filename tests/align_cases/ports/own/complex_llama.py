"""LLaMA as first released: rotary positions by complex multiplication of neighbors, fused attention, fused norms."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RootMeanSquare(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.head_dim, self.scale = heads, dim // heads, None
        kv_dim = kv_heads * self.head_dim
        self.wq, self.wk = nn.Linear(dim, dim, bias=False), nn.Linear(dim, kv_dim, bias=False)
        self.wv, self.wo = nn.Linear(dim, kv_dim, bias=False), nn.Linear(dim, dim, bias=False)

    def rotated(self, x: Tensor, turns: Tensor) -> Tensor:  # (B, T, H, D), turns (T, D/2) complex
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * turns[:, None]).flatten(3)

    def forward(self, x: Tensor, turns: Tensor, allowed: Tensor) -> Tensor:
        batch, length, dim = x.shape
        q = self.rotated(self.wq(x).view(batch, length, -1, self.head_dim), turns).transpose(1, 2)
        k = self.rotated(self.wk(x).view(batch, length, -1, self.head_dim), turns).transpose(1, 2)
        v = self.wv(x).view(batch, length, -1, self.head_dim).transpose(1, 2)
        repeats = self.heads // k.shape[1]
        k, v = (y[:, :, None].expand(-1, -1, repeats, -1, -1).reshape(batch, self.heads, length, -1) for y in (k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=self.scale)
        return self.wo(mixed.transpose(1, 2).reshape(batch, length, dim))


class FeedForward(nn.Module):
    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.w1, self.w3 = nn.Linear(dim, hidden_dim, bias=False), nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, dim: int, hidden_dim: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.attention, self.feed_forward = Attention(dim, heads, kv_heads), FeedForward(dim, hidden_dim)
        self.attention_norm, self.ffn_norm = RootMeanSquare(dim), RootMeanSquare(dim)

    def forward(self, x: Tensor, turns: Tensor, allowed: Tensor) -> Tensor:
        h = x + self.attention(self.attention_norm(x), turns, allowed)
        return h + self.feed_forward(self.ffn_norm(h))


class ComplexLlama(nn.Module):
    def __init__(self, vocabulary: int, dim: int, hidden_dim: int, heads: int, kv_heads: int, layers: int) -> None:
        super().__init__()
        self.head_dim = dim // heads
        self.tok_embeddings = nn.Embedding(vocabulary, dim)
        self.layers = nn.ModuleList(TransformerBlock(dim, hidden_dim, heads, kv_heads) for _ in range(layers))
        self.norm, self.output = RootMeanSquare(dim), nn.Linear(dim, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        frequencies = 1.0 / 10_000.0 ** (torch.arange(0, self.head_dim, 2) / self.head_dim)
        angles = torch.outer(torch.arange(length), frequencies)
        turns = torch.polar(torch.ones_like(angles), angles)
        allowed = torch.ones(length, length, dtype=torch.bool).tril()
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, turns, allowed)
        return self.output(self.norm(h))


NAMES = {  # those of transformers
    "tok_embeddings": "model.embed_tokens",
    "layers": "model.layers",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attention": "self_attn",
    "feed_forward": "mlp",
    "norm": "model.norm",
    "output": "lm_head",
    "wq": "q_proj",
    "wk": "k_proj",
    "wv": "v_proj",
    "wo": "o_proj",
    "w1": "gate_proj",
    "w2": "down_proj",
    "w3": "up_proj",
}


def neighbors(weight: Tensor, head_dim: int) -> Tensor:
    """Reorders the rows of a query or key weight, so that channels i and i + D/2 of a head become neighbors."""
    return weight.unflatten(0, (-1, 2, head_dim // 2)).transpose(1, 2).flatten(0, 2)
