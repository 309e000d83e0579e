"""Reads what C++ calls a dtype, in torch's flight recorder ("Float") and its profiler ("float", "c10::BFloat16")."""

import re

_NAMES = {
    "uint8": ("Byte", "unsigned char"),
    "int8": ("Char", "signed char"),
    "int16": ("Short", "short int", "short"),
    "int32": ("Int", "int"),
    "int64": ("Long", "long int", "long"),
    "float16": ("Half",),
    "bfloat16": ("BFloat16",),
    "float32": ("Float", "float"),
    "float64": ("Double", "double"),
    "bool": ("Bool", "bool"),
    "complex32": ("ComplexHalf", "complex<c10::Half>"),
    "complex64": ("ComplexFloat", "complex<float>"),
    "complex128": ("ComplexDouble", "complex<double>"),
}
_DTYPES = {word: dtype for dtype, words in _NAMES.items() for word in words}
_OTHERS = re.compile(r"Float[48]_\w+|UInt\d+", re.ASCII)  # named as in Python, but for capitals


def dtype_named(word: object) -> str | None:
    """Returns the dtype without prefix ("float32") of what C++ calls it ("Float"); None if the name is not known."""
    name = str(word).removeprefix("c10::")
    return _DTYPES.get(name) or (name.lower() if _OTHERS.fullmatch(name) else None)


def item_bytes(dtype: str) -> int | None:
    """Returns the bytes of an element of a dtype: 4 of "float32"; None for one that takes no whole bytes."""
    if dtype == "bool":
        return 1
    bits = re.search(r"\d+", dtype)
    return int(bits[0]) // 8 or None if bits else None
