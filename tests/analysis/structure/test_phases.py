from nbkit.analysis.structure.recognise import is_communication, phases_of
from tests.analysis.structure.graphs import Ops


def phases(ops):
    frames = ops.frames
    return dict(zip(frames["nodes"]["name"], phases_of(frames["nodes"], frames["edges"]).fillna("?"), strict=True))


def test_what_reads_a_gradient_is_backward_and_what_reads_an_update_optimizer():
    ops = Ops()
    weight = ops("parameter", name="weight")
    product = ops("matmul_v2", ops("input", name="x"), weight, name="product")
    gradient = ops("matmul_v2_grad", product, name="gradient")
    ops("adamw", weight, ops("scale", gradient, name="scaled"), name="update")
    expected = {"weight": "?", "x": "?", "product": "forward", "gradient": "backward"}
    assert phases(ops) == {**expected, "scaled": "backward", "update": "optimizer"}


def test_a_phase_that_the_source_says_stays():
    ops = Ops()
    ops("adamw", ops("add", phase="recompute", name="a"), phase="other", name="b")
    assert phases(ops) == {"a": "recompute", "b": "other"}


def test_ops_alone_are_forward():
    ops = Ops()
    ops("relu", name="a")
    assert phases(ops) == {"a": "forward"}


def test_a_module_tree_has_no_phase():
    ops = Ops("module tree")
    ops("Linear", name="a")
    assert phases(ops) == {"a": "?"}


def test_communication_is_the_collective_and_not_what_prepares_it():
    ops = Ops()
    for op in ("c_reduce_sum", "recv_v2", "_c10d_functional.all_reduce.default", "c_embedding"):
        ops(op)
    ops("cast", inserted="communication")
    ops("boxing_identity", inserted="boxing")
    assert is_communication(ops.frames["nodes"]).tolist() == [True, True, True, False, False, True]
