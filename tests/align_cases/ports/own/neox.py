"""GPT-NeoX in flat blocks: split projections, rotary positions on a part of each head, parallel residuals."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class NeoBlock(nn.Module):
    """Holds all of a layer in one module."""

    def __init__(self, width: int, inner: int, heads: int, turned: int) -> None:
        super().__init__()
        self.heads, self.part, self.theta = heads, turned, 10_000.0
        self.ln_a, self.ln_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def turn(self, x: Tensor) -> Tensor:  # (B, H, T, D): the first channels of each head
        steps = torch.arange(self.part // 2, dtype=x.dtype)
        angles = torch.arange(x.shape[2])[:, None] * torch.exp(steps * (-2 * math.log(self.theta) / self.part))
        a, b, rest = x.split([self.part // 2, self.part // 2, x.shape[-1] - self.part], -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((a * cos - b * sin, a * sin + b * cos, rest), -1)

    def attended(self, h: Tensor) -> Tensor:
        q, k, v = (linear(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for linear in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        return self.o(mixed.transpose(1, 2).flatten(2))

    def fed(self, h: Tensor) -> Tensor:
        inner = self.fc1(h)
        return self.fc2(0.5 * inner * (1 + torch.erf(inner / math.sqrt(2))))

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.attended(self.ln_a(x)) + self.fed(self.ln_b(x)))


class OwnNeoX(nn.Module):
    def __init__(self, vocabulary: int, width: int, inner: int, heads: int, turned: int, layers: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(NeoBlock(width, inner, heads, turned) for _ in range(layers))
        self.ln, self.unembed = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.wte(tokens)
        for block in self.blocks:
            x = block(x)
        return self.unembed(self.ln(x))


NAMES = {  # those of transformers
    "wte": "gpt_neox.embed_in",
    "blocks": "gpt_neox.layers",
    "ln_a": "input_layernorm",
    "ln_b": "post_attention_layernorm",
    "fc1": "mlp.dense_h_to_4h",
    "fc2": "mlp.dense_4h_to_h",
    "o": "attention.dense",
    "ln": "gpt_neox.final_layer_norm",
    "unembed": "lm_head",
}
