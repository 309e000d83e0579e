"""RWKV-4: time mix (WKV), channel mix and the head_qk copy head, in a training and a recurrent form, in plain torch.

Module and parameter names are those of BlinkDL's RWKV-v4 training code (`blocks.N.att.time_decay`, ...).
Shapes: B batch, T positions, S positions seen so far, C width, Q head_qk, V vocabulary.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class RWKV4Config:
    """Sizes of an RWKV-4. `head_qk=0` leaves out the copy head, and with it the limit of T to `context_length`."""

    vocab_size: int = 6_064
    context_length: int = 1_024
    width: int = 1_024
    layers: int = 6
    head_qk: int = 256


RWKV4_LOG = RWKV4Config()  # the sizes of the OneFlow sample log
RWKV4_TINY = RWKV4Config(vocab_size=96, context_length=32, width=32, layers=2, head_qk=16)


@dataclass
class LayerState:
    """What one block remembers of the positions before; a recurrent step replaces each field."""

    att_previous: Tensor  # (B, 1, C) input of the time mix one position ago
    ffn_previous: Tensor  # (B, 1, C) input of the channel mix one position ago
    sums: Tensor  # (2, B, 1, C) numerator and denominator of WKV, each to be scaled by exp(top)
    top: Tensor  # (B, 1, C)


@dataclass(frozen=True)
class RWKV4State:
    """All that the recurrent form knows of the positions before; with the copy head it grows with them."""

    layers: tuple[LayerState, ...]
    ids: Tensor  # (B, S), S = 0 without the copy head
    keys: Tensor  # (B, S, Q)


def shift(x: Tensor, distance: int, fill: float) -> Tensor:
    """Moves `x` (..., T, C) `distance` positions later in time, with `fill` before its start."""
    return F.pad(x[..., :-distance, :], (0, 0, distance, 0), value=fill)


def wkv(decay: Tensor, bonus: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Averages the values up to each position by weight, (B, T, C) as `k` and `v`; `decay` >= 0 and `bonus` are (C,).

    At position t the weight of v[t] is exp(bonus + k[t]), that of an earlier v[i] exp(k[i] - (t - 1 - i) * decay).
    """
    # A doubling scan (Hillis and Steele): after the round of stride s each position has summed the 2s positions up to
    # itself. That is log2(T) rounds of 17 ops on whole tensors, where the recurrence needs T of them.
    # A sum is kept as exp(top) * sums with the largest exponent in `top`, so that no exp() here overflows. The result
    # does not depend on `top`, so autograd need not see it.
    top = k.detach()
    sums = torch.stack((v, torch.ones_like(v))) * torch.exp(k - top)  # (2, B, T, C)
    stride = 1
    while stride < k.shape[1] - 1:  # no one needs the sum at the last position
        # Tops are subtracted first, here and below: their difference is exact where they are large, and what new_top
        # lost in rounding is made up for.
        earlier = shift(top, stride, -torch.inf)
        new_top = torch.maximum(top, earlier - stride * decay.detach())
        sums = torch.exp(top - new_top) * sums + torch.exp(earlier - new_top - stride * decay) * shift(sums, stride, 0)
        top, stride = new_top, 2 * stride
    return add_current(shift(sums, 1, 0), shift(top, 1, -torch.inf), bonus, k, v)


def add_current(sums: Tensor, top: Tensor, bonus: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Returns WKV (B, T, C) from the sums (2, B, T, C) over earlier positions and the current `k` and `v`."""
    new_top = torch.maximum(top, (k + bonus).detach())
    weight = torch.exp(k - new_top + bonus)
    past = torch.exp(top - new_top) * sums
    return (past[0] + weight * v) / (past[1] + weight)


def wkv_step(decay: Tensor, bonus: Tensor, k: Tensor, v: Tensor, state: LayerState) -> Tensor:
    """Computes WKV of one position, (B, 1, C) as `k` and `v`, by the recurrence, and adds that position to `state`."""
    out = add_current(state.sums, state.top, bonus, k, v)
    top = torch.maximum(state.top - decay, k).detach()
    current = torch.stack((v, torch.ones_like(v))) * torch.exp(k - top)
    state.sums = torch.exp(state.top - top - decay) * state.sums + current
    state.top = top
    return out


class TimeMix(nn.Module):
    def __init__(self, config: RWKV4Config, layer: int) -> None:
        super().__init__()
        width = config.width
        self.time_decay = nn.Parameter(initial_decay(config, layer))
        self.time_first = nn.Parameter(initial_bonus(config))
        early = initial_mix(config, layer)
        self.time_mix_k = nn.Parameter(early)
        self.time_mix_v = nn.Parameter(early + 0.3 * layer / max(config.layers - 1, 1))
        self.time_mix_r = nn.Parameter(early**0.5)
        self.time_shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.receptance = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, state: LayerState | None = None) -> Tensor:  # (B, T, C), or (B, 1, C) with a state
        previous = self.time_shift(x) if state is None else state.att_previous
        k = self.key(mix(x, previous, self.time_mix_k))
        v = self.value(mix(x, previous, self.time_mix_v))
        r = torch.sigmoid(self.receptance(mix(x, previous, self.time_mix_r)))
        # The sums need float32 at least, also under autocast.
        wide = torch.promote_types(k.dtype, torch.float32)
        terms = torch.exp(self.time_decay.to(wide)), self.time_first.to(wide), k.to(wide), v.to(wide)
        if state is None:
            y = wkv(*terms)
        else:
            y = wkv_step(*terms, state)
            state.att_previous = x
        out: Tensor = self.output(r * y.to(r.dtype))
        return out


class ChannelMix(nn.Module):
    def __init__(self, config: RWKV4Config, layer: int) -> None:
        super().__init__()
        width = config.width
        self.time_mix_k = nn.Parameter(initial_mix(config, layer))
        self.time_mix_r = nn.Parameter(initial_mix(config, layer))
        self.time_shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.key = nn.Linear(width, 4 * width, bias=False)
        self.receptance = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, state: LayerState | None = None) -> Tensor:  # (B, T, C), or (B, 1, C) with a state
        previous = self.time_shift(x) if state is None else state.ffn_previous
        if state is not None:
            state.ffn_previous = x
        k = torch.square(torch.relu(self.key(mix(x, previous, self.time_mix_k))))  # (B, T, 4C)
        kv: Tensor = self.value(k)
        return torch.sigmoid(self.receptance(mix(x, previous, self.time_mix_r))) * kv


def mix(x: Tensor, previous: Tensor, share: Tensor) -> Tensor:
    """Returns each channel's blend of its value now and one position ago."""
    return x * share + previous * (1 - share)


class Block(nn.Module):
    def __init__(self, config: RWKV4Config, layer: int) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(config.width)
        self.ln2 = nn.LayerNorm(config.width)
        self.ln0 = nn.LayerNorm(config.width) if layer == 0 else None
        self.att = TimeMix(config, layer)
        self.ffn = ChannelMix(config, layer)

    def forward(self, x: Tensor, state: LayerState | None = None) -> Tensor:  # (B, T, C), or (B, 1, C) with a state
        if self.ln0 is not None:
            x = self.ln0(x)
        x = x + self.att(self.ln1(x), state)
        out: Tensor = x + self.ffn(self.ln2(x), state)
        return out


class RWKV4(nn.Module):
    """RWKV-4 language model: `ids` (B, T) to logits (B, T, V), or to the loss when `targets` (B, T) is given."""

    copy_mask: Tensor  # (context_length, context_length): 1 where position t may copy from s <= t

    def __init__(self, config: RWKV4Config) -> None:
        super().__init__()
        self.config = config
        self.emb = nn.Embedding(config.vocab_size, config.width)
        self.blocks = nn.Sequential(*(Block(config, layer) for layer in range(config.layers)))
        self.ln_out = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        if config.head_qk:
            self.head_q = nn.Linear(config.width, config.head_qk, bias=False)
            self.head_k = nn.Linear(config.width, config.head_qk, bias=False)
            self.register_buffer("copy_mask", torch.ones(config.context_length, config.context_length).tril())
        self.apply(initialise)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        x = self.ln_out(self.blocks(self.emb(ids)))  # (B, T, C)
        logits: Tensor = self.head(x)
        if self.config.head_qk:
            logits = logits + self.copy_logits(x, ids)
        if targets is None:
            return logits
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def copy_logits(self, x: Tensor, ids: Tensor) -> Tensor:
        """Returns logits (B, T, V) for repeating an earlier id, from how well `x` (B, T, C) matches its position."""
        length = ids.shape[1]
        if length > self.config.context_length:
            raise ValueError(
                f"ids has {length} positions, but the copy head was built for {self.config.context_length}; "
                f"pass fewer, or a larger context_length."
            )
        q, k = self.head_q(x), self.head_k(x)  # (B, T, Q)
        match: Tensor = (q @ k.transpose(-2, -1)) * (1.0 / self.config.head_qk)  # (B, T, T)
        match = match.masked_fill(self.copy_mask[:length, :length] == 0, 0)
        return match @ F.one_hot(ids, self.config.vocab_size).to(match.dtype)

    def recurrent(self, ids: Tensor, state: RWKV4State | None = None) -> tuple[Tensor, RWKV4State]:
        """Returns logits (B, V) after one more position `ids` (B,), and the new state; `state` is not changed."""
        x = self.emb(ids[:, None])  # (B, 1, C)
        seen = self.empty_state(x) if state is None else state
        layers = tuple(replace(layer) for layer in seen.layers)
        for block, layer in zip(self.blocks, layers, strict=True):
            x = block(x, layer)
        x = self.ln_out(x)
        logits = self.head(x)[:, 0]
        if not self.config.head_qk:
            return logits, replace(seen, layers=layers)
        # The copy head looks at every position so far, so their ids and keys are part of the state.
        seen_ids = torch.cat((seen.ids, ids[:, None]), dim=1)  # (B, S)
        keys = torch.cat((seen.keys, self.head_k(x)), dim=1)  # (B, S, Q)
        match = (self.head_q(x) @ keys.transpose(-2, -1))[:, 0] * (1.0 / self.config.head_qk)  # (B, S)
        return logits.scatter_add(1, seen_ids, match.to(logits.dtype)), RWKV4State(layers, seen_ids, keys)

    def empty_state(self, x: Tensor) -> RWKV4State:
        """Returns the state before the first position, for embedded ids `x` (B, 1, C)."""
        zero = torch.zeros_like(x)
        wide = zero.to(torch.promote_types(x.dtype, torch.float32))
        blank = LayerState(zero, zero, torch.stack((wide, wide)), torch.full_like(wide, -torch.inf))
        none = x.new_zeros((x.shape[0], 0), dtype=torch.int64)
        return RWKV4State((blank,) * self.config.layers, none, x.new_zeros((x.shape[0], 0, self.config.head_qk)))


def initialise(module: nn.Module) -> None:
    # The released code sets several matrices to zero. Here none is, so that every op of the first step has real values.
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)


def initial_decay(config: RWKV4Config, layer: int) -> Tensor:
    """Returns the log decay rate per channel (C,): slow to fast along the channels, more curved in deeper layers."""
    depth = layer / max(config.layers - 1, 1)
    place = torch.arange(config.width) / max(config.width - 1, 1)
    return -5 + 8 * place ** (0.7 + 1.3 * depth)


def initial_bonus(config: RWKV4Config) -> Tensor:
    """Returns bonus of the current position per channel (C,), in zigzag so that neighbors differ."""
    zigzag = (torch.arange(config.width) + 1) % 3 - 1
    return torch.full((config.width,), 0.3).log() + 0.5 * zigzag


def initial_mix(config: RWKV4Config, layer: int) -> Tensor:
    """Returns the current position's share per channel (1, 1, C): rising from 0, larger in deeper layers."""
    place = torch.arange(config.width) / config.width
    return (place ** (1 - layer / config.layers))[None, None]
