"""Tests models that onnxruntime cannot run: how far they get, and what is said in one sentence."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402

from nbkit.errors import OptionError, TraceError  # noqa: E402
from nbkit.readers.onnx.run.execution import onnx_execution  # noqa: E402
from tests.readers.onnx.run.models import floats, model, named, node, value  # noqa: E402

X = value("x", ["n", 2])
VERSION = onnxruntime.__version__


def test_results_before_a_node_that_fails_are_there():
    nodes = [
        node("Abs", "x", "a"),
        node("MatMul", "a w", "m", name="product"),
        node("Neg", "m", "lost"),
        node("Neg", "a", "other"),
    ]
    execution = onnx_execution(model(nodes, [X], "lost", {"w": floats(3, 3)}), [floats(4, 2)])
    assert [result.name for result in execution.results] == ["x", "w", "a", "other"]
    assert (execution.outputs, execution.notes) == ({}, ())  # what needs the node fails with it
    assert execution.error.startswith("onnxruntime cannot run the node 'product' (MatMul): ")
    assert "imension" in execution.error
    assert "\n" not in execution.error


def test_a_node_that_fails_only_when_it_runs_is_named():
    shape = value("s", [2], TensorProto.INT64)
    nodes = [node("Neg", "x", "a"), node("Reshape", "a s", "r", name="bad"), node("Abs", "r", "y")]
    execution = onnx_execution(model(nodes, [X, shape], "y"), [floats(3, 2), np.array([4, 4])])
    assert list(named(execution)) == ["x", "s", "a"]
    assert execution.error.startswith("onnxruntime cannot run the node 'bad' (Reshape): ")
    assert execution.error.endswith(
        "The input tensor cannot be reshaped to the requested shape; Input shape:{3,2}, requested shape:{4,4}."
    )


def test_nodes_without_names_are_named_by_what_they_make():
    nodes = [node("Neg", "x", "a"), node("Reshape", "a s", "r")]
    execution = onnx_execution(model(nodes, [X], "r", {"s": np.array([5])}), [floats(3, 2)])
    assert execution.error.startswith("onnxruntime cannot run the node 'r' (Reshape): ")


def test_where_the_first_node_fails_when_it_runs_there_are_the_inputs():
    shape = value("s", [2], TensorProto.INT64)
    execution = onnx_execution(
        model([node("Reshape", "x s", "y", name="bad")], [X, shape], "y"), [floats(3, 2), np.array([4, 4])]
    )
    assert list(named(execution)) == ["x", "s"]
    assert execution.error.startswith("onnxruntime cannot run the node 'bad' (Reshape): ")


def test_a_failure_without_a_node_is_traced_to_it():
    """Loading the whole model says only that some integer is divided by zero."""
    nodes = [node("Abs", "x", "a"), node("Div", "k z", "q"), node("Neg", "a", "y")]
    divided = model(nodes, [X], "y q", {"k": np.array([1, 2]), "z": np.array([0, 1])})
    execution = onnx_execution(divided, [floats(1, 2)])
    assert list(named(execution)) == ["x", "k", "z", "a", "y"]
    assert execution.error == "onnxruntime cannot run the node 'q' (Div): Integer division by zero."


def test_nodes_that_stand_before_what_they_read_are_put_in_order():
    execution = onnx_execution(model([node("Neg", "a", "y"), node("Abs", "x", "a")], [X], "y"), [floats(1, 2)])
    assert [(result.name, result.sources) for result in execution.results] == [("x", ()), ("a", (0,)), ("y", (1,))]


def test_a_circle_is_refused():
    with pytest.raises(OptionError, match="the graph is not acyclic"):
        onnx_execution(model([node("Abs", "z", "y"), node("Neg", "y", "z")], [X], "y"), [floats(1, 2)])


def test_further_failures_are_in_the_notes():
    nodes = [node("Neg", "x", "a"), node("Reshape", "a s", "r"), node("Reshape", "x s", "q")]
    execution = onnx_execution(model(nodes, [X], "r q", {"s": np.array([5])}), [floats(3, 2)])
    assert list(named(execution)) == ["x", "s", "a"]
    assert "1 further nodes cannot be run" in execution.notes[0]


def test_an_op_that_onnxruntime_lacks_ends_what_needs_it():
    nodes = [node("Neg", "x", "a"), node("Swirl", "a", "y", domain="own.ops")]
    execution = onnx_execution(model(nodes, [X], "y", opsets={"": 20, "own.ops": 1}), [floats(1, 2)])
    assert list(named(execution)) == ["x", "a"]
    assert execution.error == (
        f"onnxruntime cannot run the node 'y' (own.ops.Swirl): onnxruntime {VERSION} has no such op; "
        "use a version that has it, or ops of ONNX."
    )


def test_a_dtype_without_kernel_is_said():
    nodes = [node("Cast", "x", "b", to=TensorProto.BFLOAT16), node("Acos", "b", "y")]
    execution = onnx_execution(model(nodes, [X], "y"), [floats(1, 2)])
    assert list(named(execution)) == ["x", "b"]
    assert execution.error.startswith("onnxruntime cannot run the node 'y' (Acos): ")
    nodes[1] = node("Abs", "b", "y")  # which ONNX has in bfloat16, and Acos has not
    execution = onnx_execution(model(nodes, [X], "y"), [floats(1, 2)])
    assert execution.error == (
        "onnxruntime cannot run the node 'y' (Abs): there is no kernel for it on the CPU in this dtype."
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (model([node("Swirl", "x", "y")], [X], "y"), "onnxruntime cannot run the node 'y' (Swirl): onnxruntime "),
        (model([node("Abs", "x", "y")], [X], "y", opsets={"": 99}), "its opset 99 is newer than onnxruntime"),
        (
            model([node("Abs", "nowhere", "y")], [X], "y"),
            "cannot run the node 'y' (Abs): Node input 'nowhere' is not a graph input",
        ),
        (onnx.ModelProto(), "The ONNX model has an empty graph: give a path"),
        (7, "The model is of type int, which is none of ONNX: give a path"),
    ],
)
def test_a_model_of_which_nothing_runs_is_refused(bad, message):
    with pytest.raises(OptionError) as caught:
        onnx_execution(bad, [floats(1, 2)])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_what_cannot_be_optimized_is_refused():
    bad = model([node("Neg", "x", "a"), node("Swirl", "a", "y")], [X], "y")
    with pytest.raises(OptionError, match=r"cannot run the node 'y' \(Swirl\)"):
        onnx_execution(bad, [floats(1, 2)], optimized="basic")


def test_a_branch_that_returns_what_is_outside_fails_as_onnxruntime_says():
    then = helper.make_graph([], "then", [], [value("w", [2])])
    other = helper.make_graph([node("Neg", "x", "e")], "else", [], [value("e", [2])])
    nodes = [node("Abs", "x", "a"), node("If", "flag", "y", then_branch=then, else_branch=other)]
    inputs = [value("x", [2]), value("flag", [], TensorProto.BOOL)]
    execution = onnx_execution(model(nodes, inputs, "a y", {"w": floats(2)}), [floats(2), True])
    assert list(named(execution)) == ["x", "flag", "w", "a"]
    assert "Subgraph output (w) is an outer scope value being returned directly" in execution.error


def test_a_newer_format_is_refused():
    newer = model([node("Abs", "x", "y")], [X], "y")
    newer.ir_version = 99
    with pytest.raises(OptionError, match="its IR version 99 is newer than the"):
        onnx_execution(newer, [floats(1, 2)])


def test_absent_external_data_are_named(tmp_path):
    large = model([node("MatMul", "x w", "y")], [X], "y", {"w": floats(2, 900)})
    onnx.save(large, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(TraceError) as caught:
        onnx_execution(tmp_path / "m.onnx", [floats(1, 2)])
    assert str(caught.value) == (
        "The values of 'w' cannot be read: expected them in 'w.bin' beside the model; put the whole file there."
    )
    with pytest.raises(TraceError, match="lie in 'w.bin', and a model in memory does not say in which folder"):
        onnx_execution(onnx.load(tmp_path / "m.onnx", load_external_data=False), [floats(1, 2)])


def test_a_damaged_initializer_is_refused():
    damaged = model([node("Add", "x w", "y")], [X], "y", {"w": floats(2)})
    damaged.graph.initializer[0].raw_data = b"abc"
    with pytest.raises(TraceError, match=r"The values of 'w' do not fit their shape or dtype"):
        onnx_execution(damaged, [floats(1, 2)])


def test_no_file_and_no_model(tmp_path):
    with pytest.raises(TraceError, match="Cannot read"):
        onnx_execution(tmp_path / "none.onnx", [])
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(TraceError, match="is no ONNX model"):
        onnx_execution(tmp_path / "text.onnx", [])


def test_a_failure_inside_a_branch_is_that_of_its_node():
    branch = helper.make_graph([node("Reshape", "a s", "t")], "then", [], [value("t", None)])
    other = helper.make_graph([node("Identity", "a", "e")], "else", [], [value("e", None)])
    nodes = [node("Abs", "x", "a"), node("If", "flag", "y", name="choice", then_branch=branch, else_branch=other)]
    inputs = [X, value("flag", [], TensorProto.BOOL), value("s", [1], TensorProto.INT64)]
    execution = onnx_execution(model(nodes, inputs, "y"), [floats(3, 2), True, [5]])
    assert list(named(execution)) == ["x", "flag", "s", "a"]
    assert execution.error.startswith("onnxruntime cannot run the node 'choice' (If): ")


def test_nodes_without_names_inside_a_branch_are_named_by_what_they_make():
    branch = helper.make_graph([node("Acos", "a", "t")], "then", [], [value("t", None)])
    other = helper.make_graph([node("Identity", "a", "e")], "else", [], [value("e", None)])
    choice = {"then_branch": branch, "else_branch": other}
    deeper = helper.make_graph([node("If", "flag", "d", **choice)], "deeper", [], [value("d", None)])
    for then, kind in ((branch, TensorProto.BFLOAT16), (deeper, TensorProto.FLOAT16)):
        nodes = [
            node("Cast", "x", "a", to=kind),
            node("If", "flag", "y", then_branch=then, else_branch=other),
        ]
        execution = onnx_execution(model(nodes, [X, value("flag", [], TensorProto.BOOL)], "y"), [floats(3, 2), True])
        assert execution.error.startswith("onnxruntime cannot run the node 'y' (If): ")
        assert "node (t)" in execution.error


def test_what_a_branch_makes_is_its_own():
    """A node of the same name outside, which reads the branch's result, makes no circle with it."""
    branches = {
        name: helper.make_graph([node(op, "a", "t"), node("Neg", "t", "r")], name, [], [value("r", [2])])
        for name, op in (("then_branch", "Abs"), ("else_branch", "Sqrt"))
    }
    nodes = [node("Neg", "y", "t"), node("If", "flag", "y", **branches), node("Abs", "x", "a")]
    inputs = [value("x", [2]), value("flag", [], TensorProto.BOOL)]
    execution = onnx_execution(model(nodes, inputs, "t"), [np.float32([-1, 2]), True])
    assert [(result.name, result.sources) for result in execution.results[2:]] == [
        ("a", (0,)),
        ("y", (1, 2)),
        ("t", (3,)),
    ]
