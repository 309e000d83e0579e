"""The sample models as their tests use them: tiny, and with ids to give them."""

from dataclasses import replace

import torch

from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY

TINY = {"llama": (Llama, LLAMA_TINY), "rwkv4": (RWKV4, RWKV4_TINY)}


def tiny(name, **changes):
    """A tiny model with every parameter moved off its start by noise, so that no part of it is idle."""
    torch.manual_seed(0)
    make, config = TINY[name]
    model = make(replace(config, **changes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def draw_ids(length, batch=2):
    """Ids that every tiny model knows."""
    least = min(config.vocab_size for _, config in TINY.values())
    return torch.randint(least, (batch, length), generator=torch.Generator().manual_seed(1))
