"""Tests what an ONNX model computes, as an execution: kinds, names, sources, values."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from nbkit.readers.onnx.run.execution import onnx_execution  # noqa: E402
from tests.readers.onnx.run.models import floats, model, named, node, value, values  # noqa: E402

MLP = model(
    [
        node("MatMul", "x w", "h"),
        node("Add", "h b", "a"),
        node("Constant", "", "two", value_float=2.0),
        node("Mul", "a two", "m"),
        node("Relu", "m", "y"),
    ],
    [value("x", ["batch", 4])],
    "y",
    {"w": floats(4, 3), "b": floats(3, seed=1)},
)


def test_results_are_inputs_initializers_constants_then_ops():
    execution = onnx_execution(MLP, [floats(2, 4)])
    rows = [(result.kind, result.name, result.op, result.call, result.sources) for result in execution.results]
    assert rows == [
        ("input", "x", None, None, ()),
        ("parameter", "w", None, None, ()),
        ("parameter", "b", None, None, ()),
        ("constant", "two", None, None, ()),
        ("op", "h", "MatMul", 0, (0, 1)),
        ("op", "a", "Add", 1, (4, 2)),
        ("op", "m", "Mul", 2, (5, 3)),
        ("op", "y", "Relu", 3, (6,)),
    ]
    assert execution.outputs == {"y": 7}
    assert execution.error is None


def test_values_are_those_of_the_reference():
    x = floats(2, 4)
    execution = onnx_execution(MLP, {"x": x})
    exposed = model(MLP.graph.node, MLP.graph.input, "h a m y", {"w": floats(4, 3), "b": floats(3, seed=1)})
    expected = dict(zip("hamy", ReferenceEvaluator(exposed).run(None, {"x": x}), strict=True))
    for name, found in values(execution).items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-5, atol=1e-6)
    assert named(execution)["y"].shape == (2, 3)
    assert named(execution)["y"].features.min >= 0


def test_the_model_stays_as_it_is():
    before = MLP.SerializeToString()
    onnx_execution(MLP, [floats(2, 4)], optimized="all")
    assert MLP.SerializeToString() == before


def test_values_are_kept_up_to_a_number_of_bytes():
    execution = onnx_execution(MLP, [floats(2, 4)], kept_bytes=0)
    assert execution.value(7) is None
    assert execution.values.left_out == 8
    assert named(execution)["y"].features.numel == 6


def test_left_out_inputs_are_no_sources_and_all_outputs_are_results():
    nodes = [node("Clip", "x - high", "c"), node("Split", "c", "s1 s2", num_outputs=2, axis=0)]
    execution = onnx_execution(model(nodes, [value("x", [2])], "s2 s1", {"high": np.float32(0.5)}), [floats(2)])
    results = named(execution)
    assert results["c"].sources == (0, 1)
    assert [(results[name].call, results[name].position) for name in ("s1", "s2")] == [(1, 0), (1, 1)]
    assert results["s2"].arguments == '{"axis": 0, "num_outputs": 2}'
    assert execution.outputs == {"s2": results["s2"].result_id, "s1": results["s1"].result_id}


def test_an_output_may_be_an_input_or_an_initializer():
    execution = onnx_execution(
        model([node("Abs", "x", "y")], [value("x", [1])], "x w y", {"w": floats(2)}), [floats(1)]
    )
    assert execution.outputs == {"x": 0, "w": 1, "y": 2}


def test_what_a_branch_captures_is_a_source():
    branches = {
        name: helper.make_graph([node(op, "a x", f"{name}_y")], name, [], [value(f"{name}_y", [2])])
        for name, op in (("then_branch", "Add"), ("else_branch", "Sub"))
    }
    nodes = [node("Abs", "x", "a"), node("If", "flag", "y", **branches)]
    inputs = [value("x", [2]), value("flag", [], TensorProto.BOOL)]
    execution = onnx_execution(model(nodes, inputs, "y"), {"x": np.float32([-1, 2]), "flag": True})
    assert named(execution)["y"].sources == (1, 2, 0)
    assert named(execution)["y"].arguments == "{}"
    np.testing.assert_array_equal(execution.value(3), [0, 4])


def test_a_loop_body_reads_from_around_it():
    inputs = [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("s", [2])]
    outputs = [value("more", [], TensorProto.BOOL), value("t", [2])]
    body = helper.make_graph([node("Identity", "go", "more"), node("Add", "s x", "t")], "body", inputs, outputs)
    loop = model([node("Loop", "n - x", "y", body=body)], [value("x", [2])], "y", {"n": np.int64(3)})
    execution = onnx_execution(loop, [np.float32([1, 2])])
    assert named(execution)["y"].sources == (1, 0)
    np.testing.assert_array_equal(execution.value(2), [4, 8])


def test_calls_of_local_functions_become_their_nodes():
    body = [node("Abs", "a", "p"), node("Neg", "p", "q")]
    function = helper.make_function("own", "Minus", ["a"], ["q"], body, [helper.make_opsetid("", 20)])
    nodes = [node("Minus", "x", "y", domain="own"), node("Minus", "y", "z", domain="own")]
    both = model(nodes, [value("x", [2])], "z", opsets={"": 20, "own": 1}, functions=[function])
    execution = onnx_execution(both, [np.float32([-1, 2])])
    assert [result.op for result in execution.results[1:]] == ["Abs", "Neg", "Abs", "Neg"]
    np.testing.assert_array_equal(execution.value(execution.outputs["z"]), [-1, -2])


def test_values_inside_a_local_function_may_be_called_as_an_initializer():
    body = [node("Abs", "a", "p"), node("Neg", "p", "q")]
    function = helper.make_function("own", "Minus", ["a"], ["q"], body, [helper.make_opsetid("", 20)])
    nodes, opsets = [node("Minus", "x", "z", domain="own")], {"": 20, "own": 1}
    for outputs in ("z p", "z"):
        both = model(nodes, [value("x", [2])], outputs, {"p": floats(3)}, opsets=opsets, functions=[function])
        execution = onnx_execution(both, [np.float32([-1, 2])])
        np.testing.assert_array_equal(execution.value(execution.outputs["z"]), [-1, -2])
        np.testing.assert_array_equal(execution.value(named(execution)["p"].result_id), floats(3))


def test_an_output_that_nothing_makes_is_a_note():
    execution = onnx_execution(model([node("Abs", "x", "y")], [value("x", [1])], "y absent"), [floats(1)])
    assert (execution.outputs, execution.notes) == ({"y": 1}, ("Nothing makes the outputs 'absent'.",))


def test_what_is_no_tensor_has_no_features():
    nodes = [node("SequenceConstruct", "x x", "s"), node("ConcatFromSequence", "s", "y", axis=0)]
    execution = onnx_execution(model(nodes, [value("x", [1])], "y"), [np.float32([3])])
    results = named(execution)
    assert (results["s"].features, results["s"].dtype) == (None, "seq(tensor(float))")
    np.testing.assert_array_equal(execution.value(results["y"].result_id), [3, 3])
    assert execution.notes == ("1 results have no numbers: they are no tensors, or texts, or sparse.",)


def test_texts_have_a_shape_and_no_features():
    nodes = [node("Cast", "x", "t", to=TensorProto.STRING), node("Cast", "t", "y", to=TensorProto.FLOAT)]
    execution = onnx_execution(model(nodes, [value("x", [2])], "y"), [np.float32([1, 2])])
    text = named(execution)["t"]
    assert (text.dtype, text.shape, text.features) == ("string", (2,), None)
    read = model([node("Cast", "t", "y", to=TensorProto.FLOAT)], [value("t", [2], TensorProto.STRING)], "y")
    np.testing.assert_array_equal(values(onnx_execution(read, [["1.5", "2"]]))["y"], [1.5, 2])


def test_bfloat16_and_float8_come_as_float32():
    nodes = [node("Cast", "x", "b", to=TensorProto.BFLOAT16), node("Cast", "x", "e", to=TensorProto.FLOAT8E4M3FN)]
    execution = onnx_execution(model(nodes, [value("x", [2])], "b e"), [np.float32([1.001, 300])])
    assert [result.dtype for result in execution.results[1:]] == ["bfloat16", "float8_e4m3fn"]
    np.testing.assert_array_equal(values(execution)["b"], np.float32([1, 300]))
    assert values(execution)["e"].dtype == np.float32


def test_bfloat16_inputs_are_given_as_float32():
    nodes = [node("Cast", "x", "y", to=TensorProto.FLOAT)]
    execution = onnx_execution(model(nodes, [value("x", [2], TensorProto.BFLOAT16)], "y"), [np.float32([1.001, 2])])
    assert execution.results[0].dtype == "bfloat16"
    np.testing.assert_array_equal(values(execution)["y"], [1, 2])


def test_bfloat16_initializers_come_as_float32():
    cast = model([node("Cast", "w", "y", to=TensorProto.FLOAT)], [], "y")
    cast.graph.initializer.append(helper.make_tensor("w", TensorProto.BFLOAT16, [2], [1.001, 2]))
    execution = onnx_execution(cast, [])
    assert (execution.results[0].dtype, execution.value(0).dtype) == ("bfloat16", np.float32)
    np.testing.assert_array_equal(execution.value(0), [1, 2])


def test_numbers_that_no_cast_of_the_opset_reads_are_left_out():
    nodes = [node("Cast", "x", name, to=TensorProto.BFLOAT16) for name in "bc"]  # Cast has bfloat16 from opset 13 on
    execution = onnx_execution(
        model([*nodes, node("Abs", "x", "y")], [value("x", [2])], "y", opsets={"": 12}), [floats(2)]
    )
    lacking = named(execution)["b"]
    assert (list(named(execution)), execution.error) == (["x", "b", "c", "y"], None)
    assert (lacking.dtype, lacking.features, execution.value(lacking.result_id)) == ("bfloat16", None, None)
    np.testing.assert_array_equal(values(execution)["y"], abs(floats(2)))


def test_float16_nan_and_inf_stay():
    nodes = [node("Div", "x x", "d"), node("Log", "x", "l")]
    x = np.float16([0, 1])
    execution = onnx_execution(model(nodes, [value("x", [2], TensorProto.FLOAT16)], "d l"), [x])
    assert named(execution)["d"].features.nan_count == 1
    assert named(execution)["l"].features.inf_count == 1
    assert values(execution)["l"].dtype == np.float16


def test_an_initializer_that_is_an_input_too_can_be_replaced():
    both = model([node("Add", "x w", "y")], [value("x", [2]), value("w", [2])], "y", {"w": np.float32([5, 5])})
    as_it_is = onnx_execution(both, {"x": np.float32([1, 1])})
    other = onnx_execution(both, {"x": np.float32([1, 1]), "w": np.float32([7, 7])})
    assert [result.kind for result in as_it_is.results] == ["input", "parameter", "op"]
    assert [float(one.value(2)[0]) for one in (as_it_is, other)] == [6, 8]
    assert [result.kind for result in other.results] == ["input", "input", "op"]


def test_external_data_are_found_beside_the_file(tmp_path):
    large = model([node("MatMul", "x w", "y")], [value("x", [1, 64])], "y", {"w": floats(64, 64)})
    small = model([node("Add", "x v", "y")], [value("x", [4])], "y", {"v": floats(4)})
    for each, x in ((large, floats(1, 64)), (small, floats(4))):
        expected = onnx_execution(each, [x])
        path = tmp_path / "model.onnx"
        onnx.save(each, path, save_as_external_data=True, location=f"{x.size}.bin", size_threshold=0)
        found = onnx_execution(path, [x])
        np.testing.assert_array_equal(found.value(2), expected.value(2))
        assert found.name == "model.onnx"


def test_a_sparse_initializer_has_a_dtype_and_a_shape_and_no_numbers():
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", TensorProto.FLOAT, [2], [2.0, 5.0]),
        helper.make_tensor("w_at", TensorProto.INT64, [2], [0, 3]),
        [2, 2],
    )
    both = model([node("MatMul", "x w", "y")], [value("x", [1, 2])], "y")
    both.graph.sparse_initializer.append(sparse)
    execution = onnx_execution(both, [np.float32([[1, 1]])])
    weight = named(execution)["w"]
    assert (weight.kind, weight.dtype, weight.shape, weight.features) == ("parameter", "float32", (2, 2), None)
    np.testing.assert_array_equal(values(execution)["y"], [[2, 5]])
