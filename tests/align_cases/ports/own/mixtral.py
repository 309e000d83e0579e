"""Mixtral with dense experts: every expert sees every token, and what was not chosen gets weight 0."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.align_cases.ports.own.plain_llama import Block, PlainLlama


class Experts(nn.Module):
    def __init__(self, width: int, inner: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen
        self.router = nn.Linear(width, experts, bias=False)
        self.gates, self.ups = (nn.Parameter(torch.empty(experts, width, inner)) for _ in range(2))
        self.downs = nn.Parameter(torch.empty(experts, inner, width))

    def shares(self, h: Tensor) -> Tensor:  # (B, T, E), which sum to 1
        scores = self.router(h)
        least = scores.topk(self.chosen, -1).values[..., -1:]
        return scores.masked_fill(scores < least, float("-inf")).softmax(-1)

    def inner(self, h: Tensor) -> Tensor:  # (B, T, E, inner)
        gates, ups = (torch.einsum("btc,eci->btei", h, weights) for weights in (self.gates, self.ups))
        return F.silu(gates) * ups

    def forward(self, h: Tensor) -> Tensor:
        return torch.einsum("btei,eic,bte->btc", self.inner(h), self.downs, self.shares(h))


class ExpertBlock(Block):
    def __init__(self, width: int, inner: int, heads: int, kv_heads: int) -> None:
        super().__init__(width, inner, heads, kv_heads)
        self.feed = Experts(width, inner, experts=4, chosen=2)


class OwnMixtral(PlainLlama):
    def __init__(self, vocabulary: int, width: int, inner: int, heads: int, kv_heads: int, layers: int) -> None:
        super().__init__(vocabulary, width, inner, heads, kv_heads, layers)
        self.blocks = nn.ModuleList(ExpertBlock(width, inner, heads, kv_heads) for _ in range(layers))
