"""Calls each vectorized function of the CPU once before a step is recorded, as torch may get its first call wrong.

MKL chooses the kernel of such a function when it is first called. Where several threads make that call together, as for
a large tensor, one of them may run a kernel of low accuracy: the first `cos` was off by 1.5e-4 in 9 of 60 processes
on two threads (https://github.com/pytorch/pytorch/issues/188792). A second run differs then, and so does a comparison.
"""

from functools import cache

import torch
from torch.utils._python_dispatch import _disable_current_modes

# What aten/src/ATen/cpu/vml.h has.
FUNCTIONS = (
    *("acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "erfinv", "exp", "expm1", "floor", "lgamma", "log"),
    *("log10", "log1p", "log2", "round", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)


@cache
def settle_vector_math() -> None:
    """Makes the first calls, in one thread: what fits in one vector register or a few is not divided among threads."""
    with (
        torch.inference_mode(False),
        torch.no_grad(),
        torch._C.DisableTorchFunction(),
        _disable_current_modes(),
    ):
        for dtype in (torch.float32, torch.float64):
            values = torch.full((64,), 0.5, dtype=dtype, device="cpu")
            for name in FUNCTIONS:
                getattr(torch, name)(values)
