"""Tests models that onnxruntime optimizes first: its fused ops run and are seen."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from nbkit.errors import OptionError  # noqa: E402
from nbkit.readers.onnx.run.execution import onnx_execution  # noqa: E402
from tests.readers.onnx.run.models import floats, model, named, node, value  # noqa: E402

CONV = model(
    [node("Conv", "x w b", "c", kernel_shape=[3, 3]), node("Relu", "c", "r"), node("Neg", "r", "y")],
    [value("x", [1, 4, 8, 8])],
    "y",
    {"w": floats(4, 4, 3, 3), "b": floats(4)},
)
LINEAR = model(
    [node("Gemm", "x w b", "g"), node("Relu", "g", "r"), node("Neg", "r", "y")],
    [value("x", [2, 40])],
    "y",
    {"w": floats(40, 40), "b": floats(40)},
)
RESIDUAL = model(
    [
        node("Add", "x s", "a"),
        node("LayerNormalization", "a w b", "n", axis=-1, epsilon=1e-5),
        node("MatMul", "n p", "y"),
    ],
    [value("x", [1, 3, 16]), value("s", [1, 3, 16])],
    "y",
    {"w": floats(16), "b": floats(16, seed=1), "p": floats(16, 16)},
)


@pytest.mark.parametrize(
    ("small", "fused", "reads"),
    [
        (CONV, "com.microsoft.FusedConv", {"x", "w", "b"}),
        (LINEAR, "com.microsoft.FusedGemm", {"x", "w", "b"}),
        (RESIDUAL, "com.microsoft.SkipLayerNormalization", {"x", "s", "w", "b"}),
    ],
)
def test_fused_ops_run_and_are_seen(small, fused, reads):
    inputs = [floats(*(dim.dim_value for dim in each.type.tensor_type.shape.dim)) for each in small.graph.input]
    plain, optimized = (onnx_execution(small, inputs, optimized=level) for level in (None, "extended"))
    (found,) = [result for result in optimized.results if result.op == fused]
    assert {optimized.results[source].name for source in found.sources} == reads
    assert found.features is not None
    expected = plain.value(plain.outputs["y"])
    np.testing.assert_allclose(optimized.value(optimized.outputs["y"]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", ["basic", "extended", "all"])
def test_every_level_ends_at_the_same_output(level):
    x = floats(1, 4, 8, 8)
    plain, optimized = onnx_execution(CONV, [x]), onnx_execution(CONV, [x], optimized=level)
    assert optimized.error is None
    assert optimized.meta["optimized"] == level
    expected = plain.value(plain.outputs["y"])
    np.testing.assert_allclose(optimized.value(optimized.outputs["y"]), expected, rtol=1e-4, atol=1e-5)


def test_a_weight_that_onnxruntime_transposes_keeps_its_name():
    nodes = [node("Transpose", "w", "t", perm=[1, 0]), node("Add", "x t", "y")]
    small = model(nodes, [value("x", [40, 48])], "y", {"w": floats(48, 40)})
    weight = onnx_execution(small, [floats(40, 48)], optimized="basic").results[1]
    assert (weight.kind, weight.name, weight.shape) == ("parameter", "w", (40, 48))


def test_what_two_initializers_hold_has_two_names():
    nodes = [node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "x w", "h"), node("Add", "h t", "y")]
    small = model(nodes, [value("x", [40, 40])], "y", {"w": floats(40, 40)})
    results = onnx_execution(small, [floats(40, 40)], optimized="basic").results
    names = [result.name for result in results if result.kind == "parameter"]
    assert len(names) == len(set(names)) == 2
    assert "w" in names


def test_results_of_fused_ops_are_computed_once_more():
    execution = onnx_execution(LINEAR, [floats(2, 40)], optimized="extended")
    results = named(execution)
    fused = results["r"].result_id
    x = np.zeros((2, 40), np.float32)
    (found,) = execution.recompute({results["x"].result_id: x}, [fused]).values()
    np.testing.assert_allclose(found, np.maximum(floats(40), 0)[None].repeat(2, 0), rtol=1e-6)


def test_an_unknown_level_is_refused():
    with pytest.raises(
        OptionError, match=r"optimized must be a level of onnxruntime, got 'extendet'; did you mean 'extended'\?"
    ):
        onnx_execution(CONV, [floats(1, 4, 8, 8)], optimized="extendet")


def test_an_initializer_may_be_an_output():
    small = model([node("Neg", "x", "y")], [value("x", [2])], "y w", {"w": np.float32([3, 4])})
    execution = onnx_execution(small, [np.float32([1, 2])], optimized="all")
    assert [execution.value(number).tolist() for number in execution.outputs.values()] == [[-1, -2], [3, 4]]
