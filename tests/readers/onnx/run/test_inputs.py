"""Tests that inputs are paired by name, or by place where all of them fit, and refused else."""

import pickle

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from nbkit.errors import OptionError  # noqa: E402
from nbkit.readers.onnx.run.inputs import paired_inputs  # noqa: E402
from tests.readers.onnx.run.models import model, node, value  # noqa: E402

TWO = model([node("Sub", "a b", "y")], [value("a", ["n", 2]), value("b", ["n", 2])], "y")
MIXED = model(
    [node("Gather", "x i", "y")],
    [value("x", [3, 2]), value("i", ["k"], TensorProto.INT64)],
    "y",
)
ONES, ZEROS = np.ones((3, 2), np.float32), np.zeros((3, 2), np.float32)


def test_same_shaped_inputs_in_another_order_are_paired_by_name():
    found = paired_inputs(TWO, {"b": ONES, "a": ZEROS})
    assert list(found) == ["a", "b"]
    assert found["a"] is ZEROS
    assert found["b"] is ONES


def test_unknown_names_are_refused_whatever_the_shapes():
    expected = (
        "The inputs do not pair by name: the model has 'a' float32 (n, 2), 'b' float32 (n, 2); given are 'p', 'q'. "
        "Give each under its name."
    )
    with pytest.raises(OptionError) as caught:
        paired_inputs(TWO, {"p": ONES, "q": ZEROS})
    assert str(caught.value) == expected


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]])
def test_missing_and_further_names_are_refused(names):
    with pytest.raises(OptionError, match="do not pair by name: .*; given are 'a'"):
        paired_inputs(TWO, dict.fromkeys(names, ONES))


def test_a_sequence_is_paired_by_place():
    found = paired_inputs(MIXED, (ONES, np.array([0, 1])))
    assert [(name, array.dtype) for name, array in found.items()] == [("x", np.float32), ("i", np.int64)]


def test_arrays_that_were_pickled_keep_their_dtype():
    found = paired_inputs(MIXED, pickle.loads(pickle.dumps((ONES, np.array([0, 1])))))
    assert [array.dtype for array in found.values()] == [np.float32, np.int64]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([ONES], "1 value given for 2 inputs: 'x' float32 (3, 2), 'i' int64 (k)"),
        ([np.array([0]), ONES], "Input 'x' is float32 (3, 2) in the model, and int64 (1) is given"),
        ([ONES.T, np.array([0])], "Input 'x' is float32 (3, 2) in the model, and float32 (2, 3) is given"),
        ([ONES, np.array([0], np.int32)], "Input 'i' is int64 (k) in the model, and int32 (1) is given"),
        ([ONES.astype(np.float64), np.array([0])], "Input 'x' is float32 (3, 2) in the model, and float64"),
        ([ONES, [0.5]], "Input 'i' is int64 (k) in the model, and float64 (1) is given"),
        (ONES, "The inputs are of type ndarray: give a dict by name, or a list with a value for each."),
        (7, "The inputs are of type int: give a dict by name"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_lists(given, message):
    with pytest.raises(OptionError) as caught:
        paired_inputs(MIXED, given)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("x", "i"), [([[1, 2], [3, 4], [5, 6]], [1, 0]), ([[0.1, 2], [3, 4], [5, 6]], [])])
def test_numbers_of_python_get_the_declared_dtype(x, i):
    found = paired_inputs(MIXED, [x, i])
    assert [array.dtype for array in found.values()] == [np.float32, np.int64]
    assert np.array_equal(found["x"], np.array(x, np.float32)) and found["i"].tolist() == i


def test_an_input_without_a_shape_takes_any():
    both = model([node("Abs", "x", "y")], [value("x", None)], "y")
    for given in (ONES, ONES[0], np.float32(3)):
        assert paired_inputs(both, [given])["x"].shape == given.shape
    with pytest.raises(OptionError, match="^0 values given for 1 input: 'x' float32 of any shape; give them as a dict"):
        paired_inputs(both, [])


def test_bfloat16_of_onnx_is_given_as_float32():
    kind = TensorProto.BFLOAT16
    given = numpy_helper.to_array(helper.make_tensor("x", kind, [2], [1.001, 2]))
    found = paired_inputs(model([node("Abs", "x", "y")], [value("x", [2], kind)], "y"), [given])["x"]
    assert (found.dtype, found.tolist()) == (np.float32, [1, 2])


def test_sizes_of_one_symbol_agree():
    with pytest.raises(OptionError, match="Size 'n' is 3 in 'a' and 1 in 'b': the model wants it equal in all of 'a'"):
        paired_inputs(TWO, [ONES, ONES[:1]])


def test_initializers_are_no_inputs():
    listed = model([node("Add", "x w", "y")], [value("x", [2]), value("w", [2])], "y", {"w": np.zeros(2, np.float32)})
    assert list(paired_inputs(listed, [ONES[0]])) == ["x"]
    assert list(paired_inputs(listed, {"w": ONES[0], "x": ONES[0]})) == ["x", "w"]


def test_inputs_that_are_no_tensors_are_refused():
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    listed = helper.make_value_info("s", helper.make_sequence_type_proto(kind))
    with pytest.raises(OptionError, match="Input 's' of the model is no tensor, but a sequence"):
        paired_inputs(model([node("ConcatFromSequence", "s", "y", axis=0)], [listed], "y"), [[ONES]])
