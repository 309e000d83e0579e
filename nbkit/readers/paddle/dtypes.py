"""Names element types: the one name that nbkit has for each, of the names in Paddle's texts."""

from nbkit.readers.element_sizes import full_name

NAMES = {"b": "bool", "i1": "bool", "index": "int64", "size_t": "uint64"}


def dtype_name(text: str) -> str:
    """Returns the name of the element type: `VarType.FP32`, `paddle.float32`, `f32` and `float32` are float32."""
    name = text.rpartition(".")[2].strip().lower()
    return NAMES.get(name) or full_name(name)
