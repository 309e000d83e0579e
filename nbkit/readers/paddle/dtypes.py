"""Names element types: the one name that nbkit has for each, of the names in Paddle's texts, and their sizes."""

SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}
SHORT = {
    "b": "bool",
    "i1": "bool",
    "i8": "int8",
    "u8": "uint8",
    "ui8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "index": "int64",
    "size_t": "uint64",
    "f16": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "fp32": "float32",
    "f64": "float64",
    "fp64": "float64",
    "c64": "complex64",
    "c128": "complex128",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "fp8_e4m3fn": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
}


def dtype_name(text: str) -> str:
    """Returns the name of the element type: `VarType.FP32`, `paddle.float32`, `f32` and `float32` are float32."""
    name = text.rpartition(".")[2].strip().lower()
    return SHORT.get(name, name)
