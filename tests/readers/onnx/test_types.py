"""Dtypes, sizes and attribute values of ONNX as the frames have them."""

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from nbkit.readers.element_sizes import element_bits, sizes
from nbkit.readers.onnx.types import attribute_value, constant_columns, dtype_name, type_columns


@pytest.mark.parametrize(
    ("code", "name", "bits"),
    [
        (TensorProto.FLOAT, "float32", 32),
        (TensorProto.BFLOAT16, "bfloat16", 16),
        (TensorProto.BOOL, "bool", 8),
        (TensorProto.INT4, "int4", 4),
        (TensorProto.FLOAT8E4M3FN, "float8_e4m3fn", 8),
        (TensorProto.COMPLEX128, "complex128", 128),
        (TensorProto.STRING, "string", None),
        (TensorProto.UNDEFINED, None, None),
        (990, "element type 990", None),
    ],
)
def test_element_types_have_the_names_and_sizes_of_the_frames(code: int, name: str | None, bits: int | None) -> None:
    assert dtype_name(code) == name
    if code != 990:
        assert element_bits(name) == bits


@pytest.mark.parametrize(
    ("dtype", "shape", "numel", "size_bytes"),
    [
        ("float32", [2, 3], 6, 24),
        ("float32", [], 1, 4),
        ("float32", [0, 3], 0, 0),
        ("int4", [3], 3, 2),
        ("string", [3], 3, None),
        ("float32", None, None, None),
        ("float32", [2, None], None, None),
        ("float32", [2, -1], None, None),
        ("int8", [2**61], 2**61, 2**61),
        ("int8", [2**62], None, None),
        ("float32", [2**60], None, None),
    ],
)
def test_sizes_are_null_where_they_are_not_known(dtype, shape, numel, size_bytes):
    assert sizes(dtype, shape) == {"numel": numel, "size_bytes": size_bytes}


def test_symbols_of_sizes_and_types_of_no_tensor_are_attributes():
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT16, ["batch", 3, None])
    assert type_columns(tensor) == ({"dtype": "float16", "shape": [None, 3, None]}, {"sizes": ["batch", "3", "0"]})
    assert type_columns(helper.make_tensor_type_proto(TensorProto.INT8, [2])) == ({"dtype": "int8", "shape": [2]}, {})
    assert type_columns(helper.make_tensor_type_proto(TensorProto.INT8, None)) == ({"dtype": "int8"}, {})
    assert type_columns(helper.make_sequence_type_proto(tensor)) == ({}, {"type": "sequence"})
    sparse = helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [4])
    assert type_columns(sparse) == ({"dtype": "float32", "shape": [4]}, {"type": "sparse_tensor"})


def test_a_constant_has_the_type_of_the_one_attribute_that_holds_it():
    assert constant_columns({"value": {"dtype": "int64", "shape": [2], "value": [1, 2]}}) == {
        "dtype": "int64",
        "shape": [2],
    }
    assert constant_columns({"value_int": 0}) == {"dtype": "int64", "shape": []}
    assert constant_columns({"value_floats": [1.0, 2.0]}) == {"dtype": "float32", "shape": [2]}
    assert constant_columns({"value_strings": []}) == {"dtype": "string", "shape": [0]}
    assert constant_columns({"value_ints": {"items": 2000}}) == constant_columns({}) == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2, 2),
        (0.5, 0.5),
        ("größer", "größer"),
        ([1, 2], [1, 2]),
        ([0.5, 1.5], [0.5, 1.5]),
        (["a", "b"], ["a", "b"]),
        (list(range(1000)), list(range(1000))),
        (list(range(1001)), {"items": 1001, "first": list(range(1000))}),
    ],
)
def test_attributes_are_json_data(value, expected):
    assert attribute_value(helper.make_attribute("a", value)) == expected


def test_small_tensors_in_attributes_are_written_out():
    few, many = (numpy_helper.from_array(np.arange(number, dtype=np.int32)) for number in (16, 17))
    written = {"dtype": "int32", "shape": [16], "value": list(range(16))}
    assert attribute_value(helper.make_attribute("a", few)) == written
    assert attribute_value(helper.make_attribute("a", many)) == {"dtype": "int32", "shape": [17]}
    assert attribute_value(helper.make_attribute("a", [few, many])) == [written, {"dtype": "int32", "shape": [17]}]
    elsewhere = TensorProto(data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    assert attribute_value(helper.make_attribute("a", elsewhere)) == {"dtype": "float32", "shape": [2]}
    cut = TensorProto(data_type=TensorProto.FLOAT, dims=[2], raw_data=b"123")
    assert attribute_value(helper.make_attribute("a", cut))["value"].startswith("unreadable: ")


def test_attributes_of_a_function_and_graphs_are_named():
    reference = AttributeProto(name="a", type=AttributeProto.INT, ref_attr_name="axis")
    assert attribute_value(reference) == {"attribute of the function": "axis"}
    assert attribute_value(helper.make_attribute("a", helper.make_graph([], "g", [], []))) == "graph"
