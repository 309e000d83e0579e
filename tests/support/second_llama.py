"""A second LLaMA with the weights of the sample model, written as another author would: other modules, other ops."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sample_models.llama import LLAMA_TINY, Llama, LlamaConfig


@dataclass(frozen=True)
class Ways:
    """Says how it computes, and what is wrong about it."""

    fused_attention: bool = False
    eps: float = 1e-5
    theta: float = 10_000.0
    scale: float = 1.0
    repeats_in_turn: bool = False  # heads 0, 1, 0, 1, where 0, 0, 1, 1 is right
    attends_apart: bool = False  # in a module of its own


class Norm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.gain, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x: Tensor) -> Tensor:
        return x * (x * x).mean(-1, keepdim=True).add(self.eps).rsqrt() * self.gain


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, T, H, D), tables (T, 1, D/2)
    a, b = x.tensor_split(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    """Attends with the projections that it holds, in one module with what is around it, or in one of its own."""

    def __init__(self, config: LlamaConfig, ways: Ways) -> None:
        super().__init__()
        width, heads = config.hidden_size, config.num_key_value_heads * config.head_dim
        self.size, self.ways = config.head_dim, ways
        self.wq, self.wo = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.wk, self.wv = nn.Linear(width, heads, bias=False), nn.Linear(width, heads, bias=False)

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        k, q, v = (linear(h).unflatten(-1, (-1, self.size)) for linear in (self.wk, self.wq, self.wv))
        return self.wo(self.attended(turned(q, cos, sin), turned(k, cos, sin), v))

    def attended(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (heads.transpose(1, 2) for heads in (q, k, v))
        count, ways = q.shape[1] // k.shape[1], self.ways
        repeats = (1, count, 1, 1)
        k, v = (x.repeat(repeats) if ways.repeats_in_turn else x.repeat_interleave(count, 1) for x in (k, v))
        if ways.fused_attention:
            scale = ways.scale * self.size**-0.5
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale).transpose(1, 2).flatten(2)
        scores = q @ k.transpose(2, 3) * (ways.scale * self.size**-0.5)
        hidden = torch.full(scores.shape[2:], float("-inf")).triu(1)
        return ((scores + hidden).softmax(-1) @ v).transpose(1, 2).flatten(2)


class Rest(nn.Module):
    """Holds the norms of a layer and its feed-forward network, which is no module of its own."""

    def __init__(self, config: LlamaConfig, ways: Ways) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.n1, self.n2 = Norm(width, ways.eps), Norm(width, ways.eps)
        self.w1, self.w3 = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.w2 = nn.Linear(inner, width, bias=False)

    def fed_forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        h = self.n2(x)
        return x + self.w2(self.w3(h) * F.silu(self.w1(h)))


class Block(Rest, Attention):
    """Holds all of a layer: no module of its own for attention or the feed-forward network."""

    def __init__(self, config: LlamaConfig, ways: Ways) -> None:
        Attention.__init__(self, config, ways)
        inner = Rest(config, ways)
        for name, module in inner.named_children():
            setattr(self, name, module)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        return self.fed_forward(x + Attention.forward(self, self.n1(x), cos, sin))


class SplitBlock(Rest):
    """Holds an attention of its own class beside the projections of its feed-forward network."""

    def __init__(self, config: LlamaConfig, ways: Ways) -> None:
        super().__init__(config, ways)
        self.att = Attention(config, ways)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        return self.fed_forward(x + self.att(self.n1(x), cos, sin))


class SecondLlama(nn.Module):
    def __init__(self, config: LlamaConfig, ways: Ways) -> None:
        super().__init__()
        self.size, self.ways = config.head_dim, ways
        self.wte = nn.Embedding(config.vocab_size, config.hidden_size)
        block = SplitBlock if ways.attends_apart else Block
        self.blocks = nn.ModuleList(block(config, ways) for _ in range(config.num_hidden_layers))
        self.final, self.out = (
            Norm(config.hidden_size, ways.eps),
            nn.Linear(config.hidden_size, config.vocab_size, False),
        )

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        frequencies = 1.0 / self.ways.theta ** (torch.arange(0, self.size, 2).float() / self.size)
        angles = torch.outer(torch.arange(ids.shape[1]).float(), frequencies)[:, None]
        x = self.wte(ids)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        logits = self.out(self.final(x))
        return logits if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())


NAMES = {
    "wte": "model.embed_tokens",
    "blocks": "model.layers",
    "final": "model.norm",
    "out": "lm_head",
    "n1": "input_layernorm",
    "n2": "post_attention_layernorm",
    "gain": "weight",
    "wq": "self_attn.q_proj",
    "wk": "self_attn.k_proj",
    "wv": "self_attn.v_proj",
    "wo": "self_attn.o_proj",
    "w1": "mlp.gate_proj",
    "w2": "mlp.down_proj",
    "w3": "mlp.up_proj",
}


def first_name(name: str) -> str:
    """Returns what the sample model calls a parameter of the second one."""
    return ".".join(NAMES.get(part, part) for part in name.split(".") if part != "att")


def two_llamas(ways: Ways | None = None, config: LlamaConfig = LLAMA_TINY) -> tuple[Llama, SecondLlama]:
    """Makes the sample model with weights that no two of are alike, and the second one with the same."""
    torch.manual_seed(0)
    first, second = Llama(config), SecondLlama(config, ways or Ways())
    with torch.no_grad():
        for parameter in first.parameters():
            parameter.mul_(3) if parameter.dim() > 1 else parameter.add_(torch.randn_like(parameter), alpha=0.1)
    weights = first.state_dict()
    second.load_state_dict({name: weights[first_name(name)] for name in second.state_dict()})
    return first, second
