"""Reads which dtypes a cast changes into which."""

from collections.abc import Mapping

import torch

from nbkit.capture.operators.intercept import Intercepted
from nbkit.errors import OptionError, nearest
from nbkit.ops.families import COPIES

Dtype = str | torch.dtype
FLOATING = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
COMPLEX_OF = {torch.float64: torch.complex128, torch.float32: torch.complex64, torch.float16: torch.complex32}
FLOAT8 = tuple(
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    if hasattr(torch, name)
)


def dtype_map(dtype: Dtype | Mapping[Dtype, Dtype] | None) -> dict[torch.dtype, torch.dtype]:
    """Returns which dtype is computed in which: one for all floating-point dtypes, or from one to another.

    Takes "float32", torch.float32, "float16->float32,bfloat16->float32", and a mapping. Complex dtypes follow the real
    ones. Raises OptionError.
    """
    if dtype is None:
        raise OptionError("A dtype to compute in is missing; give one, such as float32.")
    if isinstance(dtype, str) and "->" in dtype:
        pairs = [part.partition("->") for part in dtype.split(",") if part.strip()]
        dtype = {before: after for before, _, after in pairs}
    if isinstance(dtype, Mapping):
        real = {read_dtype(before): read_dtype(after) for before, after in dtype.items()}
    else:
        target = read_dtype(dtype)
        real = {before: target for before in FLOATING if before is not target}
    if not real:
        raise OptionError(f"dtype={dtype!r} names no dtype; give such as 'float32', or {{'float16': 'float32'}}.")
    for before, after in list(real.items()):
        if before in COMPLEX_OF and after in COMPLEX_OF:
            real[COMPLEX_OF[before]] = COMPLEX_OF[after]
    return real


def read_dtype(dtype: Dtype) -> torch.dtype:
    """Returns a floating-point dtype from its name, with or without `torch.`. Raises OptionError."""
    name = str(dtype).strip().removeprefix("torch.")
    known: dict[str, torch.dtype] = {str(one).removeprefix("torch."): one for one in (*FLOATING, *FLOAT8)}
    if name not in known:
        raise OptionError(f"dtype must be a floating-point dtype, got {str(dtype)!r}; {nearest(name, known)}")
    return known[name]


def not_cast(call: Intercepted, dtypes: Mapping[torch.dtype, torch.dtype]) -> str | None:
    """Returns why a cast says nothing about a call; None where it does."""
    if call.traits.packet in COPIES:
        return "casts and copies"
    if not any(tensor.dtype in dtypes for tensor in call.tensors()):
        return "no inputs of a dtype that is cast"
    return None
