"""Turns names of OneFlow's dtypes and distributions (SBP) into those of the frames."""

from math import prod
from typing import Any

from nbkit.readers.element_sizes import element_bytes
from nbkit.readers.text_proto import Message, message, messages, number, text, texts

NAMES = {"float": "float32", "double": "float64", "ofrecord": "of_record", "tensorbuffer": "tensor_buffer"}
# More elements than this, and a size was misread.
MOST_ELEMENTS = 1 << 50
PARALLEL = {"broadcast_parallel": "B", "partial_sum_parallel": "P"}


def dtype_name(name: str | None) -> str | None:
    """Returns the dtype of a protobuf name (kFloat) or a Python one (oneflow.float32), without prefix, if any."""
    if name is None:
        return None
    plain = name.removeprefix("k").lower()
    plain = NAMES.get(plain, plain)
    is_known = name[:1] == "k" and (element_bytes(plain) or plain in NAMES.values())
    return plain if is_known else name.removeprefix("oneflow.").removeprefix("flow.")


def dims(shape: Message) -> tuple[int, ...] | None:
    """Returns the sizes of a shape message, () for that of a scalar; None if one is no number."""
    sizes = [number(size) for size in texts(shape, "dim")]
    return tuple(size for size in sizes if isinstance(size, int)) if all(isinstance(n, int) for n in sizes) else None


def element_count(shape: tuple[int, ...] | None) -> int | None:
    """Returns the number of elements; None where a size is unknown."""
    if shape is None or min(shape, default=0) < 0:
        return None
    count = prod(shape)
    return count if count <= MOST_ELEMENTS else None


def shape_of(parent: Message) -> tuple[int, ...] | None:
    """Returns the sizes in the field `shape`; None if there is none."""
    return dims(message(parent, "shape")) if parent.get("shape") else None


def sbp_names(parent: Message) -> list[str] | None:
    """Returns the distribution in the field `nd_sbp`, in the words of the listing: ["S(0)"]; None if there is none."""
    distributions: list[Any] = parent.get("nd_sbp", [])
    if not distributions:
        return None
    if isinstance(distributions[0], str):
        return texts(parent, "nd_sbp")
    return [sbp_name(axis) for nd_sbp in messages(parent, "nd_sbp") for axis in messages(nd_sbp, "sbp_parallel")]


def sbp_name(parallel: Message) -> str:
    """Returns B, P or S(axis) of one sbp_parallel message."""
    for field, name in PARALLEL.items():
        if field in parallel:
            return name
    return f"S({text(message(parallel, 'split_parallel'), 'axis') or 0})"
