"""Tests that results are computed once more from other values, each from what it reads alone."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402

from nbkit.readers.onnx.run.execution import onnx_execution  # noqa: E402
from tests.readers.onnx.run.models import floats, model, named, node, value  # noqa: E402

# x -> a -> b -> y, and x -> c -> y
DIAMOND = model(
    [node("Mul", "x w", "a"), node("Neg", "a", "b"), node("Abs", "x", "c"), node("Add", "b c", "y")],
    [value("x", [2])],
    "y",
    {"w": np.float32([2, 3])},
)


@pytest.fixture
def execution():
    return onnx_execution(DIAMOND, [np.float32([1, -1])])


def _recomputed(execution, replaced, wanted):
    ids = {name: result.result_id for name, result in named(execution).items()}
    values = {ids[name]: np.float32(each) for name, each in replaced.items()}
    found = execution.recompute(values, [ids[name] for name in wanted])
    return {execution.results[key].name: each.tolist() for key, each in found.items()}


def test_nothing_replaced_gives_the_same(execution):
    found = execution.recompute({}, [2, 3, 4, 5])
    assert {key: each.tolist() for key, each in found.items()} == {
        key: execution.value(key).tolist() for key in (2, 3, 4, 5)
    }


def test_a_replaced_result_changes_what_reads_it_and_not_itself(execution):
    found = _recomputed(execution, {"a": [10, 20]}, "abcy")
    assert found == {"a": [2, -3], "b": [-10, -20], "c": [1, 1], "y": [-9, -19]}


def test_with_all_replaced_each_result_is_local(execution):
    values = {"x": [1, 1], "w": [5, 5], "a": [10, 20], "b": [100, 200], "c": [0, 0], "y": [7, 7]}
    assert _recomputed(execution, values, "abcy") == {"a": [5, 5], "b": [-10, -20], "c": [1, 1], "y": [100, 200]}


def test_values_of_another_dtype_are_cast(execution):
    found = execution.recompute({2: np.array([1, 2], dtype=np.int64)}, [3])
    assert (found[3].dtype, found[3].tolist()) == (np.float32, [-1, -2])


def test_what_cannot_be_computed_from_the_values_is_missing(execution):
    assert _recomputed(execution, {"b": np.zeros(3)}, "abcy") == {"a": [2, -3], "b": [-2, 3], "c": [1, 1]}


def test_inputs_and_initializers_are_made_by_nothing(execution):
    assert execution.recompute({0: np.zeros(2)}, [0, 1]) == {}


def test_calls_know_nothing_of_each_other(execution):
    first = _recomputed(execution, {"a": [0, 0]}, "y")
    assert _recomputed(execution, {"c": [0, 0]}, "y") == {"y": [-2, 3]}
    assert _recomputed(execution, {"a": [0, 0]}, "y") == first


def test_inner_graphs_read_the_replaced_value():
    then, other = (
        helper.make_graph([node(op, "a", name)], name, [], [value(name, [2])])
        for op, name in (("Neg", "t"), ("Abs", "e"))
    )
    nodes = [node("Add", "x x", "a"), node("If", "flag", "y", then_branch=then, else_branch=other)]
    inputs = [value("x", [2]), value("flag", [], TensorProto.BOOL)]
    execution = onnx_execution(model(nodes, inputs, "y"), [np.float32([1, 2]), True])
    assert _recomputed(execution, {"a": [7, 8]}, "ay") == {"a": [2, 4], "y": [-7, -8]}


def test_bfloat16_values_are_rounded_to_it():
    nodes = [node("Cast", "x", "b", to=TensorProto.BFLOAT16), node("Cast", "b", "y", to=TensorProto.FLOAT)]
    execution = onnx_execution(model(nodes, [value("x", [2])], "y"), [np.float32([1, 2])])
    assert _recomputed(execution, {"b": [1.001, 3]}, "by") == {"b": [1, 2], "y": [1, 3]}


def test_sequences_between_are_computed_on_the_way():
    nodes = [node("Neg", "x", "n"), node("SequenceConstruct", "n n", "s"), node("ConcatFromSequence", "s", "y", axis=0)]
    execution = onnx_execution(model(nodes, [value("x", [1])], "y"), [np.float32([3])])
    assert _recomputed(execution, {"n": [5]}, "nsy") == {"n": [-3], "y": [5, 5]}


def test_the_input_of_the_run_is_a_copy():
    x = np.float32([1, -1])
    execution = onnx_execution(DIAMOND, [x])
    x[:] = 0
    assert _recomputed(execution, {}, "a") == {"a": [2, -3]}


def test_values_in_place_of_a_sequence_are_not_taken():
    nodes = [node("SequenceConstruct", "x x", "s"), node("ConcatFromSequence", "s", "y", axis=0)]
    execution = onnx_execution(model(nodes, [value("x", [1])], "y"), [np.float32([3])])
    assert _recomputed(execution, {"s": [5]}, "sy") == {"y": [3, 3]}


def test_constants_and_large_initializers_are_replaced():
    nodes = [node("Constant", "", "k", value_float=2.0), node("MatMul", "x w", "h"), node("Mul", "h k", "y")]
    execution = onnx_execution(model(nodes, [value("x", [1, 64])], "y", {"w": floats(64, 64)}), [floats(1, 64)])
    found = _recomputed(execution, {"k": 3, "w": np.eye(64)}, "y")
    np.testing.assert_allclose(found["y"], floats(1, 64) * 3, rtol=1e-6)
