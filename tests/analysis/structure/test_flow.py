"""What the dataflow of one graph says, whatever order its file has."""

import pytest

from nbkit.analysis.structure.flow import Flow
from nbkit.step.nodes import Nodes
from tests.analysis.structure.graphs import Ops


def product():
    ops = Ops()
    weight = ops("Transpose", ops("parameter", name="w"), name="turned")
    ops("Relu", ops("MatMul", ops("input", name="x"), weight, name="y"), name="z")
    return ops


def flow_of(ops, order):
    """The flow of nodes that stand in this order in their file, and the name of each."""
    nodes, edges = ops.frames["nodes"], ops.frames["edges"]
    places = {number: place for place, number in enumerate(order)}
    moved = edges.assign(src=edges["src"].map(places), dst=edges["dst"].map(places))
    names = list(ops.ids)
    flow = Flow(Nodes(nodes.iloc[order].reset_index(drop=True), moved), range(len(order)))
    return flow, [names[number] for number in order]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [3, 1, 4, 0, 2]])
def test_a_node_comes_after_all_that_it_reads(order):
    flow, names = flow_of(product(), order)
    found = [names[node] for node in flow.order]
    assert found.index("w") < found.index("turned") < found.index("y") < found.index("z")
    assert found.index("x") < found.index("y")
    assert {names[node] for node, is_held in flow.is_held.items() if is_held} == {"w", "turned"}
    assert [names[node] for node in flow.projections] == ["y"]


def test_an_order_that_follows_the_edges_stays():
    flow, names = flow_of(product(), [2, 0, 1, 3, 4])
    assert [names[node] for node in flow.order] == ["x", "w", "turned", "y", "z"]


def test_what_a_damaged_file_has_in_a_cycle_stands_last():
    ops = Ops()
    ops("Relu", ops("Exp", name="a"), name="b")
    ops("Neg", ops("input", name="x"), name="y")
    ops.rows.edge(ops.ids["b"], ops.ids["a"], "b", dst_port=0)
    flow, names = flow_of(ops, [0, 1, 2, 3])
    assert [names[node] for node in flow.order] == ["x", "y", "a", "b"]


def test_what_lies_before_a_node_has_each_node_once_and_nothing_that_is_held():
    ops = Ops()
    x = ops("Exp", ops("input", name="x"), name="a")
    y = ops("Mul", ops("Tanh", x, name="b"), ops("parameter", name="w"), name="y")
    ops("Add", ops("Mul", y, x, name="z"), y, name="end")
    flow = Flow(Nodes(ops.frames["nodes"], ops.frames["edges"]), range(len(ops.ids)))
    between, projections = flow.back_to_projections(ops.ids["end"])
    assert between == {ops.ids[name] for name in ("x", "a", "b", "y", "z", "end")} and projections == set()
