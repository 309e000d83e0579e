"""Reads which settings of the process make each step slower, and are easily left on."""

import os
import sys
import tracemalloc

import torch
from torch import distributed


def slow_settings() -> list[str]:
    """Returns those of findings/time/settings.py that are on; of CUDA and of ranks, only where these are used."""
    on_cuda = torch.cuda.is_initialized()
    has_ranks = distributed.is_available() and distributed.is_initialized()
    is_on = {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "trace": sys.gettrace() is not None,
        "profile": sys.getprofile() is not None,
        "tracemalloc": tracemalloc.is_tracing(),
        "blocking": on_cuda and os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"),
        "uncached": on_cuda and os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") not in ("", "0"),
        "ranks": has_ranks and os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL",
    }
    return [name for name, on in is_on.items() if on]
