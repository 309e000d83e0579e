from nbkit.analysis.structure.patterns import patterns_in
from nbkit.analysis.structure.patterns.residual import branch_nodes, streams
from tests.analysis.structure.graphs import Ops


def chains(ops):
    norms = [one for one in patterns_in(ops.flow) if one.role == "norm"]
    return [[ops.names([one.node])[0] for one in chain] for chain in streams(ops.flow, norms)]


def test_a_stream_is_its_additions_in_order():
    ops = Ops()
    first = ops("input")
    second = ops("Add", first, ops.linear(ops("LayerNormalization", first), 4, 4), name="a")
    ops("Add", ops.linear(second, 4, 4), ops("Cast", second), name="b")
    assert chains(ops) == [["a", "b"]]


def test_x_plus_its_cube_is_no_residual():
    ops = Ops()
    x = ops("input")
    for _ in range(2):
        x = ops("Add", x, ops("Pow", x, ops("constant")))
    assert chains(ops) == []


def test_a_stream_goes_on_behind_a_norm_after_the_addition():
    ops = Ops()
    x = ops("input")
    for name in "ab":
        x = ops("LayerNormalization", ops("Add", x, ops.linear(x, 4, 4), name=name))
    assert chains(ops) == [["a", "b"]]


def test_additions_inside_of_a_branch_are_not_the_stream():
    ops = Ops()
    x = ops("input")
    for name in "ab":
        normed = ops("LayerNormalization", x)
        inner = ops("Add", normed, ops.linear(normed, 4, 4))
        x = ops("Add", x, ops.linear(inner, 4, 4), name=name)
    assert chains(ops) == [["a", "b"]]


def test_a_branch_does_not_hold_what_it_only_reads():
    ops = Ops()
    x, table = ops("input"), ops("input")
    for _ in range(2):
        x = ops("Add", x, ops.linear(ops("Mul", x, ops("Cast", table, name=f"table{x}")), 4, 4))
    first = streams(ops.flow, [])[0][0]
    assert not any(name.startswith("table") for name in ops.names(branch_nodes(ops.flow, first)))
