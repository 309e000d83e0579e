"""LLaMA: RMSNorm, rotary positions, SwiGLU, grouped-query attention and a KV cache, in plain torch.

Parameter names are those of the Hugging Face checkpoints (`model.layers.N.self_attn.q_proj.weight`, ...).
Shapes: B batch, T new positions, S positions seen so far (cached and new), C width, H query heads, K key/value heads,
D head size, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

KVCache = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a LLaMA; the defaults are the 7B shape."""

    vocab_size: int = 32_000
    hidden_size: int = 4_096
    intermediate_size: int = 11_008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int = 32
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10_000.0

    def __post_init__(self) -> None:
        if self.hidden_size % (2 * self.num_attention_heads):
            raise ValueError(
                f"hidden_size {self.hidden_size} does not give {self.num_attention_heads} heads of an even size; "
                f"rotary positions turn pairs of channels, so take a multiple of {2 * self.num_attention_heads}."
            )
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"{self.num_attention_heads} attention heads cannot share {self.num_key_value_heads} key/value heads "
                f"evenly; num_key_value_heads must divide num_attention_heads."
            )

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads


LLAMA_7B = LlamaConfig()
LLAMA_TINY = LlamaConfig(
    vocab_size=96,
    hidden_size=32,
    intermediate_size=88,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
# A step of this one is bound by launching ops, not by computing them: 8 layers of width 128.
LLAMA_SMALL = LlamaConfig(
    vocab_size=256,
    hidden_size=128,
    intermediate_size=352,
    num_hidden_layers=8,
    num_attention_heads=4,
    num_key_value_heads=2,
)


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        # Normalized in float32 and cast back before the weight, as the released models do.
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


def rotary_tables(positions: Tensor, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """Returns cosine and sine of the rotary angles, each (T, D)."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device=positions.device) / head_dim
    angles = positions.float()[:, None] * (1.0 / theta**exponents)  # (T, D/2)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, H, T, D) -> (B, H, T, D)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.kv_heads = config.num_key_value_heads
        self.head_dim = config.head_dim
        kv_size = self.kv_heads * self.head_dim
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:  # x (B, T, C); past and returned keys and values (B, K, S, D)
        batch, length, width = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2)  # (B, H, T, D)
        k = self.k_proj(x).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)  # (B, K, T, D)
        v = self.v_proj(x).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        q, k = apply_rotary(q, cos, sin), apply_rotary(k, cos, sin)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        mask = causal_mask(length, k.shape[2], x.device) if past is not None and length > 1 else None
        # enable_gqa: each key/value head serves the H/K query heads next to each other.
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=past is None and length > 1, enable_gqa=True
        )  # (B, H, T, D)
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, width)), (k, v)


def causal_mask(length: int, seen: int, device: torch.device) -> Tensor:
    """Returns true where new position t of `length` may look at position s of `seen`: (T, S)."""
    return torch.ones(length, seen, dtype=torch.bool, device=device).tril(seen - length)


class MLP(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class DecoderLayer(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        attended, present = self.self_attn(self.input_layernorm(x), cos, sin, past)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), present


class LlamaModel(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, ids: Tensor, cache: KVCache | None = None) -> tuple[Tensor, KVCache]:
        """Returns hidden states (B, T, C) of `ids` (B, T), and the cache including them."""
        seen = cache[0][0].shape[2] if cache else 0
        positions = torch.arange(seen, seen + ids.shape[1], device=ids.device)
        cos, sin = rotary_tables(positions, self.config.head_dim, self.config.rope_theta)
        x = self.embed_tokens(ids)
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        presents: KVCache = []
        for index, layer in enumerate(self.layers):
            x, present = layer(x, cos, sin, cache[index] if cache else None)
            presents.append(present)
        return self.norm(x), presents


class Llama(nn.Module):
    """LLaMA language model: `ids` (B, T) to logits (B, T, V), or to the loss when `targets` (B, T) is given."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.model = LlamaModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.apply(initialise)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        logits: Tensor = self.lm_head(self.model(ids)[0])
        if targets is None:
            return logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    def decode(self, ids: Tensor, cache: KVCache | None = None) -> tuple[Tensor, KVCache]:
        """Returns logits (B, T, V) of new positions `ids` (B, T) given what the cache has seen, and the new cache."""
        hidden, cache = self.model(ids, cache)
        return self.lm_head(hidden), cache


def initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
