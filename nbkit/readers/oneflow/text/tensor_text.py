"""Reads texts of tensors as Python prints them: inputs, outputs, parameters and buffers of modules."""

import re
from dataclasses import dataclass

from nbkit.readers.oneflow.dtypes import dtype_name
from nbkit.readers.oneflow.text.operator_line import device_of, sizes

SHAPES = (re.compile(r"size=\(([^)]*+)\)"), re.compile(r"flow\.Size\(\[([^\]]*+)\]"))
DTYPE = re.compile(r"dtype=([^,)\n ]*+)")
PLACEMENT = re.compile(r"placement=((?:oneflow|flow)\.placement\([^()]*+(?:\([^()]*+\)[^()]*+)*+\))")
SBP = re.compile(r"sbp=\(((?:[^()]++|\([^()]*+\))*+)\)")
AXIS = re.compile(r"sbp\.(?:(broadcast)|(partial_sum)|split\((?:dim=|axis=)?(\d{1,3})\))")
GRAD_FN = re.compile(r"grad_fn=<?([\w.:]{1,200})")


@dataclass(frozen=True, slots=True)
class TensorText:
    """Holds what `tensor(..., size=(8, 1024), dtype=oneflow.float32)` says; `sbp` in the words of the listing."""

    shape: tuple[int, ...] | None
    dtype: str | None
    has_grad: bool
    sbp: tuple[str, ...] = ()
    device: str | None = None
    is_lazy: bool = False
    grad_fn: str | None = None


def tensor_text(text: str) -> TensorText:
    """Returns shape, dtype and whether it has a gradient, where the text says them."""
    shape = next((match[1] for pattern in SHAPES if (match := pattern.search(text))), None)
    dtype, placement, sbp, grad_fn = (pattern.search(text) for pattern in (DTYPE, PLACEMENT, SBP, GRAD_FN))
    return TensorText(
        None if shape is None else sizes(shape),
        dtype_name(dtype[1]) if dtype and dtype[1] else None,
        "requires_grad=True" in text or "accumulate_grad" in text,
        tuple(map(_axis, AXIS.finditer(sbp[1]))) if sbp else (),
        device_of(placement[1]) if placement else None,
        "is_lazy='True'" in text or "is_lazy=True" in text,
        grad_fn[1] if grad_fn else None,
    )


def _axis(found: re.Match[str]) -> str:
    return "B" if found[1] else "P" if found[2] else f"S({found[3]})"
