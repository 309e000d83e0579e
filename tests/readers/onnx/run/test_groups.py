"""Tests models whose results come in several groups, so that not all of them are in memory together."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto  # noqa: E402

from nbkit.readers.onnx.run import engine  # noqa: E402
from nbkit.readers.onnx.run.execution import onnx_execution  # noqa: E402
from tests.readers.onnx.run.models import floats, model, node, value  # noqa: E402

CHAIN = model(
    [
        node("MatMul", "x w", "a"),
        node("Cast", "a", "b", to=TensorProto.BFLOAT16),
        node("SequenceConstruct", "a x", "s"),
        node("Cast", "b", "c", to=TensorProto.FLOAT),
        node("SequenceAt", "s zero", "d"),
        node("Sub", "c d", "e"),
        node("Add", "e a", "y"),
    ],
    [value("x", [8, 8])],
    "y",
    {"w": floats(8, 8), "zero": np.int64(0)},
)


def test_groups_hold_no_more_than_the_limit(monkeypatch):
    monkeypatch.setattr(engine, "GROUP_BYTES", 600)
    known = {name: ("tensor(float)", [10, 10]) for name in "abcd"} | {"e": ("tensor(float)", ["n"])}
    assert list(engine._grouped("abcdef", known)) == [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]
    monkeypatch.setattr(engine, "GROUP_BYTES", 800)
    assert list(engine._grouped("abcd", known)) == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize("limit", [1, 300, 600])
def test_results_are_the_same_in_any_groups(monkeypatch, limit):
    whole = onnx_execution(CHAIN, [floats(8, 8, seed=1)])
    monkeypatch.setattr(engine, "GROUP_BYTES", limit)
    grouped = onnx_execution(CHAIN, [floats(8, 8, seed=1)])
    assert grouped.results == whole.results
    assert grouped.outputs == whole.outputs
    for result in whole.results:
        np.testing.assert_array_equal(grouped.value(result.result_id), whole.value(result.result_id))


def test_recomputing_is_the_same_in_any_groups(monkeypatch):
    execution = onnx_execution(CHAIN, [floats(8, 8, seed=1)])
    ids = {result.name: result.result_id for result in execution.results}
    replaced, wanted = {ids["a"]: floats(8, 8, seed=2)}, [ids[name] for name in "abcdey"]
    whole = execution.recompute(replaced, wanted)
    monkeypatch.setattr(engine, "GROUP_BYTES", 1)
    grouped = execution.recompute(replaced, wanted)
    assert list(grouped) == list(whole) == wanted
    assert all(np.array_equal(grouped[key], whole[key]) for key in wanted)


def test_a_failure_in_a_late_group_leaves_the_others(monkeypatch):
    nodes = [node("Abs", "x", "a"), node("Neg", "a", "b"), node("Reshape", "b s", "r"), node("Neg", "b", "c")]
    late = model(nodes, [value("x", [4]), value("s", [1], TensorProto.INT64)], "r c")
    monkeypatch.setattr(engine, "GROUP_BYTES", 1)
    execution = onnx_execution(late, [floats(4), [3]])
    assert [result.name for result in execution.results] == ["x", "s", "a", "b", "c"]
    assert execution.error.startswith("onnxruntime cannot run the node 'r' (Reshape)")
