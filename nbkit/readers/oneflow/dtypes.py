"""Turns names of OneFlow's dtypes and distributions (SBP) into those of the frames."""

from typing import Any

from nbkit.readers.text_proto import Message, message, messages, number, text, texts

DTYPES = {
    "kChar": "char",
    "kFloat": "float32",
    "kDouble": "float64",
    "kInt8": "int8",
    "kInt32": "int32",
    "kInt64": "int64",
    "kUInt8": "uint8",
    "kOFRecord": "of_record",
    "kFloat16": "float16",
    "kTensorBuffer": "tensor_buffer",
    "kBFloat16": "bfloat16",
    "kBool": "bool",
    "kUInt16": "uint16",
    "kInt16": "int16",
    "kInt128": "int128",
    "kUInt32": "uint32",
    "kUInt64": "uint64",
    "kUInt128": "uint128",
    "kComplex32": "complex32",
    "kComplex64": "complex64",
    "kComplex128": "complex128",
}
ELEMENT_BYTES = {
    **dict.fromkeys(("char", "int8", "uint8", "bool"), 1),
    **dict.fromkeys(("float16", "bfloat16", "int16", "uint16"), 2),
    **dict.fromkeys(("float32", "int32", "uint32", "complex32"), 4),
    **dict.fromkeys(("float64", "int64", "uint64", "complex64"), 8),
    **dict.fromkeys(("int128", "uint128", "complex128"), 16),
}
# More elements than this, and a size was misread.
MOST_ELEMENTS = 1 << 50
PARALLEL = {"broadcast_parallel": "B", "partial_sum_parallel": "P"}


def dtype_name(name: str | None) -> str | None:
    """Returns the dtype of a protobuf name (kFloat) or a Python one (oneflow.float32), without prefix, if any."""
    if name is None:
        return None
    return DTYPES.get(name, name.removeprefix("oneflow.").removeprefix("flow."))


def dims(shape: Message) -> tuple[int, ...] | None:
    """Returns the sizes of a shape message, () for that of a scalar; None if one is no number."""
    sizes = [number(size) for size in texts(shape, "dim")]
    return tuple(size for size in sizes if isinstance(size, int)) if all(isinstance(n, int) for n in sizes) else None


def element_count(shape: tuple[int, ...] | None) -> int | None:
    """Returns the number of elements; None where a size is unknown."""
    if shape is None or min(shape, default=0) < 0:
        return None
    count = 1
    for size in shape:
        count *= size
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
