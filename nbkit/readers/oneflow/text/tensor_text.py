"""Reads texts of tensors as Python prints them: inputs, outputs, parameters and buffers of modules."""

import re
from dataclasses import dataclass

from nbkit.readers.oneflow.dtypes import dtype_name
from nbkit.readers.oneflow.text.operator_line import sizes

SHAPES = (re.compile(r"size=\(([^)]*+)\)"), re.compile(r"flow\.Size\(\[([^\]]*+)\]"))
DTYPE = re.compile(r"dtype=([^,)\n ]*+)")


@dataclass(frozen=True, slots=True)
class TensorText:
    """Holds what `tensor(..., size=(8, 1024), dtype=oneflow.float32)` says."""

    shape: tuple[int, ...] | None
    dtype: str | None
    has_grad: bool


def tensor_text(text: str) -> TensorText:
    """Returns shape, dtype and whether it has a gradient, where the text says them."""
    shape = next((match[1] for pattern in SHAPES if (match := pattern.search(text))), None)
    dtype = DTYPE.search(text)
    return TensorText(
        None if shape is None else sizes(shape),
        dtype_name(dtype[1]) if dtype and dtype[1] else None,
        "requires_grad=True" in text or "accumulate_grad" in text,
    )
