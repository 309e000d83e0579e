"""Tells the bits of an element from the dtype's name, and reads the short names that compilers have for dtypes."""

import re
from collections.abc import Iterable, Sequence
from math import prod

# What stands before the bits: `i32`, `bf16`, `fp8_e4m3fn`.
LETTERS = {"i": "int", "u": "uint", "ui": "uint", "f": "float", "fp": "float", "bf": "bfloat", "c": "complex"}
SHORT = re.compile(r"(ui?|i|fp?|bf|c)(\d{1,3})_?(e\dm\d\w*)?")
LONGEST_SIZE = 19
BITS = re.compile(r"(?:u?int|b?float|complex)([2468]|16|32|64|128)(?:_\w+|e\dm\d\w*)?")


def element_bits(dtype: str | None) -> int | None:
    """Returns the bits of an element; None where the name does not say them, or where they differ."""
    if dtype in ("bool", "char"):
        return 8
    match = BITS.fullmatch(dtype or "")
    return int(match[1]) if match else None


def element_bytes(dtype: str | None) -> int | None:
    """Returns the bytes of an element; None where it has none of its own, or where they are not known."""
    return (element_bits(dtype) or 0) // 8 or None


def sizes(dtype: str | None, shape: Sequence[int | None] | None) -> dict[str, int | None]:
    """Returns columns numel and size_bytes; null where a size is not known or makes no sense."""
    known = [size for size in shape or () if size is not None and size >= 0]
    if shape is None or (0 not in known and len(known) < len(shape)):
        return {"numel": None, "size_bytes": None}
    numel, bits = prod(known), element_bits(dtype)
    size_bytes = None if bits is None and numel else -(-numel * (bits or 0) // 8)
    # More than an int64 holds is a number that no tensor has.
    fits = numel < 2**62 and (size_bytes or 0) < 2**62
    return {"numel": numel if fits else None, "size_bytes": size_bytes if fits else None}


def sizes_in(texts: Iterable[str]) -> tuple[int, ...] | None:
    """Returns the sizes that texts say, () of none; None if one is no number, or longer than that of a size."""
    sizes = [text.strip() for text in texts]
    are_sizes = all(len(size) < LONGEST_SIZE and size.removeprefix("-").isdecimal() for size in sizes)
    return tuple(map(int, sizes)) if are_sizes else None


def full_name(name: str) -> str:
    """Returns float32 of f32; other names as they are."""
    match = SHORT.fullmatch(name)
    return "".join((LETTERS[match[1]], match[2], f"_{match[3]}" if match[3] else "")) if match else name
