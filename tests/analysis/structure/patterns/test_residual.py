from nbkit.analysis.structure.patterns import patterns_in
from nbkit.analysis.structure.patterns.residual import branch_nodes, streams
from nbkit.analysis.structure.recognise import recognise
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


def test_a_product_that_adds_to_the_stream_itself_is_on_it():
    """OneFlow fuses an addition into the product before it, which then reads one tensor more."""
    ops = Ops()
    first = ops("input")
    for name in "ab":
        normed = ops("LayerNormalization", first)
        weight = ops("parameter", shape=(4, 4))
        fused = ops("MatMul", normed, weight, first, name=f"{name}1", attributes={"hidden_inputs": [{"op": "x"}]})
        first = ops("Add", fused, ops.linear(fused, 4, 4), name=f"{name}2")
    assert chains(ops) == [["a1", "a2", "b1", "b2"]]
    roles = recognise(ops.frames)["nodes"].set_index("name")["role"]
    assert roles[["a2", "b2"]].tolist() == ["residual"] * 2
    assert "residual" not in roles[["a1", "b1"]].tolist()


def test_a_product_that_adds_what_it_does_not_come_from_is_no_stream():
    ops = Ops()
    first, other = ops("input"), ops("input")
    for name in "ab":
        weight = ops("parameter", shape=(4, 4))
        first = ops("MatMul", first, weight, other, name=name, attributes={"hidden_inputs": [{"op": "x"}]})
    assert chains(ops) == []
