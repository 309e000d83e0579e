"""Models that read one token at a time: a static cache of keys and values, and wrappers around recurrent forms."""

import inspect

import torch
from torch import Tensor, nn

from tests.align_cases.ports.own.plain_llama import Feed, Norm, half_split


class CachedAttend(nn.Module):
    """Keeps keys and values of the positions seen so far in buffers that it writes to."""

    def __init__(self, width: int, heads: int, kv_heads: int, limit: int, batch: int) -> None:
        super().__init__()
        self.size, self.groups = width // heads, kv_heads
        self.wq, self.wo = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.wk, self.wv = (nn.Linear(width, kv_heads * self.size, bias=False) for _ in range(2))
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, limit, kv_heads, self.size), persistent=False)

    def emptied(self) -> None:
        self.keys.zero_()
        self.values.zero_()

    def slot(self, position: int) -> int:
        return position

    def key_position(self, position: int) -> int:
        return position

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor, position: int) -> Tensor:  # (B, 1, C), tables (T, 1, D/2)
        q, k, v = (linear(h).unflatten(-1, (-1, self.size)) for linear in (self.wq, self.wk, self.wv))
        q, at = half_split(q, cos[position], sin[position]), self.key_position(position)
        self.keys[:, self.slot(position)] = half_split(k, cos[at], sin[at])[:, 0]
        self.values[:, self.slot(position)] = v[:, 0]
        keys, values = self.keys[:, : position + 1], self.values[:, : position + 1]
        q = q[:, 0].unflatten(1, (self.groups, -1))  # (B, K, H/K, D)
        weights = (torch.einsum("bkgd,bskd->bkgs", q, keys) * self.size**-0.5).softmax(-1)
        return self.wo(torch.einsum("bkgs,bskd->bkgd", weights, values).flatten(1)[:, None])


class CachedBlock(nn.Module):
    def __init__(self, width: int, inner: int, attend: CachedAttend) -> None:
        super().__init__()
        self.first, self.second, self.attend, self.feed = Norm(width), Norm(width), attend, Feed(width, inner)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, position: int) -> Tensor:
        x = x + self.attend(self.first(x), cos, sin, position)
        return x + self.feed(self.second(x))


class CachedLlama(nn.Module):
    """Takes whole sequences and reads them token by token; names of parameters are those of PlainLlama."""

    def __init__(self, vocabulary: int, width: int, inner: int, heads: int, kv_heads: int, layers: int) -> None:
        super().__init__()
        self.size = width // heads
        self.table = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(
            CachedBlock(width, inner, CachedAttend(width, heads, kv_heads, limit=16, batch=2)) for _ in range(layers)
        )
        self.last, self.out = Norm(width), nn.Linear(width, vocabulary, bias=False)

    def step(self, token: Tensor, cos: Tensor, sin: Tensor, position: int) -> Tensor:  # (B, 1) -> (B, 1, V)
        x = self.table(token)
        for block in self.blocks:
            x = block(x, cos, sin, position)
        return self.out(self.last(x))

    def forward(self, ids: Tensor) -> Tensor:
        frequencies = 10_000.0 ** (torch.arange(0, -self.size, -2).float() / self.size)
        angles = torch.outer(torch.arange(ids.shape[1]).float(), frequencies)[:, None]
        cos, sin = angles.cos(), angles.sin()
        for block in self.blocks:
            block.attend.emptied()
        return torch.cat([self.step(ids[:, t : t + 1], cos, sin, t) for t in range(ids.shape[1])], 1)


class Prefill(nn.Module):
    """Reads the sequence at once and returns the logits (B, V) of its last token."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        return self.model(ids).logits[:, -1]


class Decode(nn.Module):
    """Reads one token after another with the cache of transformers, and returns the logits (B, V) of the last."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        name = "cache" if "cache" in inspect.signature(self.model.forward).parameters else "past_key_values"
        seen, found = None, None
        for token in ids.split(1, dim=1):
            found = self.model(token, use_cache=True, **{name: seen})
            seen = getattr(found, name)
        return found.logits[:, -1]


class Recurrent(nn.Module):
    """Reads one token after another with the recurrent form of the sample RWKV-4, and returns all logits (B, T, V)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        state, logits = None, []
        for token in ids.unbind(1):
            step, state = self.model.recurrent(token, state)
            logits.append(step)
        return torch.stack(logits, 1)
