"""Nodes and edges of a graph as lists: nulls are None, and edges stay among the nodes that are asked about."""

from nbkit.graphs.rows import GraphRows
from nbkit.step.nodes import Nodes


def nodes():
    rows = GraphRows()
    x = rows.node("g", "input", "x", dtype="float32", shape=[2, None])
    w = rows.node("g", "parameter", "w", module="")
    y = rows.node("g", "op", "y", op="aten.mm.default", attributes={"k": 1})
    z = rows.node("h", "op", "z", op="MatMul")
    for src, dst, tensor in ((x, y, "x"), (w, y, "w"), (None, y, "lost"), (y, z, "y:0"), (y, z, "y:1"), (x, z, "x")):
        rows.edge(src, dst, tensor, dst_port=0)
    frames = rows.frames()
    return Nodes(frames["nodes"], frames["edges"])


def test_a_column_is_a_list_with_none_for_what_is_not_known():
    known = nodes()
    assert known.kinds == ["input", "parameter", "op", "op"]
    assert known.ops == [None, None, "aten.mm.default", "MatMul"] and known.does == ["", "", "matmul", "matmul"]
    assert known.modules == [None, "", None, None]
    assert known.shapes == [(2, None), None, None, None]
    assert known.attributes == [None, None, '{"k": 1}', None]


def test_what_is_read_stands_in_the_order_of_the_edges_and_what_comes_from_elsewhere_is_left_out():
    known = nodes()
    assert known.among(range(4)) == (
        {0: [], 1: [], 2: [0, 1], 3: [2, 2, 0]},
        {0: [2, 3], 1: [2], 2: [3, 3], 3: []},
    )
    assert known.among([0, 3]) == ({0: [], 3: [0]}, {0: [3], 3: []})


def test_a_result_is_called_as_the_first_edge_that_reads_it_says():
    assert nodes().results == ["x", "w", "y:0", "z"]
