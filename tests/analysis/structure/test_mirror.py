from nbkit.analysis.structure.graph import Graph
from nbkit.analysis.structure.locating import mirror_locations
from nbkit.step.nodes import Nodes
from tests.analysis.structure.graphs import Ops


def located(ops):
    """Locations by name; an op of the forward stands in a place of its own name."""
    frames = ops.frames
    nodes, rows = frames["nodes"], list(range(len(frames["nodes"])))
    phases = nodes["phase"].astype(object).where(nodes["phase"].notna(), None).tolist()
    locations = [("forward", name) if phase == "forward" else () for name, phase in zip(ops.ids, phases, strict=True)]
    graph = Graph("g", rows, Nodes(nodes, frames["edges"]), phases, [phase or "" for phase in phases], {}, locations)
    mirror_locations(graph)
    return dict(zip(ops.ids, graph.locations, strict=True))


def test_a_gradient_op_belongs_to_the_op_of_whose_result_it_reads_the_gradient():
    ops = Ops()
    ops("relu", ops("tanh", phase="forward", name="a"), phase="forward", name="b")
    ops("relu_grad", "a", ops("fill_constant", phase="backward", name="b@GRAD"), phase="backward", name="a@GRAD")
    places = located(ops)
    assert places["a@GRAD"] == ("backward", "b")
    assert places["b@GRAD"] == ("backward", "b")


def test_what_is_computed_once_more_belongs_to_the_op_of_its_name():
    ops = Ops()
    ops("relu", phase="forward", name="a")
    ops("relu", phase="recompute", name="a.subprog_0")
    ops("relu", phase="recompute", name="b.subprog_0")
    assert located(ops) == {"a": ("forward", "a"), "a.subprog_0": ("recompute", "a"), "b.subprog_0": ()}


def test_a_gradient_op_without_names_belongs_to_the_op_of_its_kind_that_shares_most_of_its_inputs():
    ops = Ops()
    x, y = ops("input", name="x"), ops("input", name="y")
    ops("matmul_v2", x, phase="forward", name="one")
    ops("matmul_v2", x, y, phase="forward", name="both")
    ops("add", x, y, phase="forward", name="other")
    ops("matmul_v2_grad", x, y, phase="backward", name="n")
    assert located(ops)["n"] == ("backward", "both")


def test_a_gradient_without_names_that_reads_a_weight_belongs_to_the_weight():
    ops = Ops()
    x, weight = ops("input", name="x"), ops("parameter", phase="forward", name="w")
    ops("matmul_v2", x, weight, phase="forward", name="y")
    ops("matmul_v2", ops("fill_constant", phase="backward", name="dy"), weight, phase="backward", name="dx")
    assert located(ops)["dx"] == ("backward", "w")


def test_what_the_optimizer_makes_of_a_gradient_is_no_copy_of_the_forward():
    ops = Ops()
    ops("relu", phase="forward", name="a")
    gradient = ops("relu_grad", "a", phase="backward", name="a@GRAD")
    ops("sum", gradient, phase="optimizer", name="a@GRAD@RENAME@block0@1")
    assert located(ops)["a@GRAD@RENAME@block0@1"] == ()


def test_nodes_that_have_names_of_their_own_are_told_by_those_of_their_results():
    ops = Ops()
    for name, op, phase in (
        ("tanh_0", "tanh", "forward"),
        ("relu_0", "relu", "forward"),
        ("relu_1", "relu", "forward"),
        ("add_0", "add", "forward"),
        ("relu_2", "relu", "recompute"),
        ("fill_0", "fill_constant", "backward"),
        ("grad_0", "relu_grad", "backward"),
    ):
        ops(op, phase=phase, name=name)
    for src, dst, tensor in (
        *(("tanh_0", reader, "a") for reader in ("relu_0", "relu_1", "relu_2", "grad_0")),
        *(("relu_0", "add_0", "b"), ("relu_1", "add_0", "c")),
        *(("relu_2", "grad_0", "c.subprog_0"), ("fill_0", "grad_0", "c@GRAD")),
    ):
        ops.rows.edge(ops.ids[src], ops.ids[dst], tensor, dst_port=0)
    places = located(ops)
    assert places["relu_2"] == ("recompute", "relu_1")
    assert places["grad_0"] == places["fill_0"] == ("backward", "relu_1")
