"""Turns dtypes, shapes and attribute values of ONNX into those of the frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbkit.readers.element_sizes import sizes

if TYPE_CHECKING:
    from onnx import AttributeProto, TensorProto, TypeProto

# Where the frames spell a dtype otherwise than ONNX does in capitals.
SPELLED = {
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn",
}
# A tensor in an attribute is written out up to so many elements, other lists up to so many items.
FEW, MANY = 16, 1_000


def dtype_name(code: int) -> str | None:
    """Returns the dtype of an element type's number; null for none, its number for one that this onnx does not know."""
    from onnx import TensorProto

    if code == TensorProto.UNDEFINED:
        return None
    try:
        name = str(TensorProto.DataType.Name(code)).lower()
    except ValueError:
        return f"element type {code}"
    return SPELLED.get(name, name)


def element_type(dtype: str) -> int:
    """Returns the number of an element type by the dtype's name."""
    from onnx import TensorProto

    written = {ours: theirs for theirs, ours in SPELLED.items()}
    return int(TensorProto.DataType.Value(written.get(dtype, dtype).upper()))


def type_columns(value: TypeProto) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns dtype and shape of a value's type, and what they do not say: symbols of sizes, a type of no tensor."""
    kind = value.WhichOneof("value")
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return {}, {} if kind is None else {"type": kind.removesuffix("_type")}
    tensor = getattr(value, kind)
    columns: dict[str, Any] = {"dtype": dtype_name(tensor.elem_type)}
    attributes: dict[str, Any] = {} if kind == "tensor_type" else {"type": "sparse_tensor"}
    if tensor.HasField("shape"):
        sizes = [size.dim_value if size.HasField("dim_value") else None for size in tensor.shape.dim]
        columns["shape"] = sizes
        if any(size.dim_param for size in tensor.shape.dim):
            attributes["sizes"] = [size.dim_param or str(size.dim_value) for size in tensor.shape.dim]
    return columns, attributes


def tensor_columns(tensor: TensorProto) -> dict[str, Any]:
    """Returns columns dtype and shape of a tensor in the file."""
    return {"dtype": dtype_name(tensor.data_type), "shape": list(tensor.dims)}


def constant_columns(attributes: dict[str, Any]) -> dict[str, Any]:
    """Returns columns dtype and shape of a Constant node's result, from the one attribute that holds its value."""
    if isinstance(tensor := attributes.get("value"), dict):
        return {name: tensor.get(name) for name in ("dtype", "shape")}
    for name, dtype in (("value_int", "int64"), ("value_float", "float32"), ("value_string", "string")):
        if name in attributes:
            return {"dtype": dtype, "shape": []}
        if isinstance(several := attributes.get(f"{name}s"), list):
            return {"dtype": dtype, "shape": [len(several)]}
    return {}


def attribute_value(attribute: AttributeProto) -> Any:
    """Returns the value of an attribute as JSON data; nothing of a graph, which is a further graph."""
    from onnx import helper

    if attribute.ref_attr_name:
        return {"attribute of the function": attribute.ref_attr_name}
    try:
        value = helper.get_attribute_value(attribute)
    except ValueError:  # it has no type
        value = None
    several = isinstance(value, list)
    plain = [_plain(item) for item in (value if several else [value])]
    if None in plain:
        return attribute.AttributeType.Name(attribute.type).lower()
    return _some(plain) if several else plain[0]


def _plain(value: Any) -> Any:
    """Returns JSON data of a number, a text or a tensor; null of anything else."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if hasattr(value, "data_type"):
        return _tensor(value)
    return value if isinstance(value, int | float) else None


def _some(items: list[Any]) -> list[Any] | dict[str, Any]:
    return items if len(items) <= MANY else {"items": len(items), "first": items[:MANY]}


def _tensor(tensor: TensorProto) -> dict[str, Any]:
    """Returns what a tensor is, and its values if they are few and in this file."""
    from onnx import TensorProto, numpy_helper

    columns = tensor_columns(tensor)
    numel = sizes(columns["dtype"], columns["shape"])["numel"]
    if numel is not None and numel <= FEW and tensor.data_location != TensorProto.EXTERNAL:
        try:
            columns["value"] = numpy_helper.to_array(tensor).tolist()
        except (ValueError, TypeError) as error:  # fewer bytes than its shape says, an unknown element type
            columns["value"] = f"unreadable: {error}"
    return columns
