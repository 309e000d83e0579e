"""Reads texts of tensors as Python prints them: inputs, outputs, parameters and buffers of modules."""

from dataclasses import dataclass

from nbkit.readers.oneflow.dtypes import dtype_name
from nbkit.readers.oneflow.text.operator_line import sizes


@dataclass(frozen=True, slots=True)
class TensorText:
    """Holds what `tensor(..., size=(8, 1024), dtype=oneflow.float32)` says."""

    shape: tuple[int, ...] | None
    dtype: str | None
    has_grad: bool


def tensor_text(text: str) -> TensorText:
    """Returns shape, dtype and whether it has a gradient, where the text says them."""
    dtype = _until(text, "dtype=", ",)\n ")
    return TensorText(_shape(text), dtype_name(dtype), "requires_grad=True" in text or "accumulate_grad" in text)


def _shape(text: str) -> tuple[int, ...] | None:
    for start, end in (("size=(", ")"), ("flow.Size([", "]")):
        if (at := text.find(start)) >= 0 and (stop := text.find(end, at)) >= 0:
            return sizes(text[at + len(start) : stop])
    return None


def _until(text: str, start: str, ends: str) -> str | None:
    at = text.find(start)
    if at < 0:
        return None
    rest = text[at + len(start) :]
    stop = min((position for end in ends if (position := rest.find(end)) >= 0), default=len(rest))
    return rest[:stop] or None
