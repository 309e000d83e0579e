"""Finds random ops that draw the same numbers in every call although their generator has moved on.

A generator that was seeded or set back (activation checkpointing, the same seed in every step) gives the same numbers
rightly: its state before the calls is the same, and it has moved after the first of them.
"""

from hashlib import blake2b
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nbkit.capture.diff.random_statistics import LOG_CHANCE, log_equal
from nbkit.capture.replay.copies import all_tensors

# So many numbers of each call are kept and compared, of so many kinds of calls.
KEPT, KINDS = 4096, 512


class Draws(NamedTuple):
    """What a call drew, as far as it is kept, and the state that its generator had before."""

    numbers: Tensor
    state: bytes


class Repeats:
    """Remembers the last draws of each kind of call: op, shape, dtype and numbers among the arguments."""

    def __init__(self) -> None:
        self.last: dict[Any, Draws] = {}

    def found(self, key: Any, out: Tensor, chance: float | Tensor | None, states: tuple[bytes, bytes]) -> str | None:
        """What is wrong with these draws if they are those of the last such call; `chance` as in rows_alike()."""
        before, after = states
        numbers = out.detach().reshape(-1)[:KEPT].clone()
        last = self.last.get(key)
        if len(self.last) < KINDS or key in self.last:
            self.last[key] = Draws(numbers, before)
        if last is None or not torch.equal(last.numbers, numbers):
            return None
        is_set_back = last.state == before and before != after
        if is_set_back or log_equal(numbers, chance) >= LOG_CHANCE:
            return None
        return f"random: the same {len(numbers)} numbers as in the last call of this op, though the generator has moved"


def generator_state(args: Any, kwargs: Any) -> bytes | None:
    """The state, in short, of the generator that a call draws from; None where it cannot be read."""
    generator = kwargs.get("generator") or next((arg for arg in args if isinstance(arg, torch.Generator)), None)
    try:
        if generator is not None:
            state = generator.get_state()
        else:
            tensors = all_tensors(args, kwargs)
            device = torch.device(kwargs.get("device") or (tensors[0].device if tensors else "cpu"))
            state = (
                torch.get_rng_state() if device.type == "cpu" else torch.get_device_module(device).get_rng_state(device)
            )
        return blake2b(state.numpy().tobytes(), digest_size=16).digest()
    except Exception:  # a device without such a module, or while a CUDA graph is captured
        return None
