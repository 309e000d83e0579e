"""Runs an op with torch's lazy conj() and neg() in force, as it runs without a dispatch mode.

Inside a mode's handler torch leaves out the keys that resolve them (2.13). A kernel that is made of other ops then
computes with numbers that were not conjugated: linalg.pinv of a complex matrix is wrong below an empty mode.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

CONJUGATE, NEGATIVE = torch._C.DispatchKey.Conjugate, torch._C.DispatchKey.Negative
NotExcluded = torch._C._SetExcludeDispatchKeyGuard


def resolving(run: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `run` with both in force; that takes microseconds, and only complex numbers need it."""

    def run_resolving(*args: Any, **kwargs: Any) -> Any:
        with NotExcluded(CONJUGATE, False), NotExcluded(NEGATIVE, False):
            return run(*args, **kwargs)

    return run_resolving


def as_bare(run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Returns what `run` returns, both in force if an argument is complex."""
    for value in args:
        if _is_complex(value):
            return resolving(run)(*args, **kwargs)
    if kwargs and any(map(_is_complex, kwargs.values())):
        return resolving(run)(*args, **kwargs)
    return run(*args, **kwargs)


def _is_complex(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.is_complex()
    return isinstance(value, list | tuple) and any(map(_is_complex, value))
