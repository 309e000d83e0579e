"""Each pattern on the smallest graph that has it, and on one that only looks like it."""

import pytest

from nbkit.analysis.structure.patterns import patterns_in
from tests.analysis.structure.graphs import Ops


def found(ops):
    return {one.role: ops.names(one.nodes) for one in patterns_in(ops.flow)}


def evidence(ops):
    return [one.evidence for one in patterns_in(ops.flow)]


def rms_norm(ops, x, mean="ReduceMean"):
    root = ops("Sqrt", ops("Add", ops(mean, ops("Pow", x, ops("constant"))), ops("constant")))
    return ops("Mul", ops("Mul", x, ops("Reciprocal", root)), ops("parameter", shape=(4,), name="scale"), name="normed")


def test_a_norm_written_out():
    ops = Ops()
    rms_norm(ops, ops("input", name="x"))
    names = found(ops)["norm"]
    assert "normed" in names and "x" not in names


def test_a_root_of_a_largest_square_is_no_norm():
    ops = Ops()
    rms_norm(ops, ops("input"), mean="ReduceMax")
    assert found(ops) == {}


@pytest.mark.parametrize(("op", "inputs"), [("Exp", 1), ("Concat", 2), ("Mul", 2)])
def test_a_root_of_a_mean_of_anything_but_squares_is_no_norm(op, inputs):
    ops = Ops()
    x = ops("input")
    others = [x, *(ops("input") for _ in range(1, inputs))]
    root = ops("Sqrt", ops("ReduceMean", ops(op, *others)))
    ops("Mul", x, ops("Reciprocal", root))
    assert found(ops) == {}


def attention(ops, soft="Softmax", *steps):
    x = ops("input")
    q, k, v = (ops.linear(x, 4, 4) for _ in range(3))
    scores = ops("Add", ops("Mul", ops("MatMul", q, ops("Transpose", k)), ops("constant")), ops("buffer"))
    weights = ops(soft, scores)
    for step in steps:
        weights = ops(step, weights, ops("buffer"))
    return ops.linear(ops("Reshape", ops("MatMul", weights, v, name="mixed")), 4, 4)


def test_attention_reaches_from_its_projections_to_the_last():
    ops = Ops()
    last = attention(ops)
    names = found(ops)["attention"]
    assert last in names and "mixed" in names
    assert sum(ops.ids[name] in ops.flow.projections for name in names) == 4


def test_attention_whose_probabilities_are_masked_and_scaled_is_one():
    """As dropout does it that is written out."""
    ops = Ops()
    last = attention(ops, "Softmax", "Mul", "Div")
    names = found(ops)["attention"]
    assert last in names and "mixed" in names


def test_products_without_a_softmax_are_no_attention():
    ops = Ops()
    attention(ops, soft="Sigmoid")
    assert found(ops) == {}


def test_a_softmax_over_experts_is_no_attention():
    ops = Ops()
    x = ops("input")
    ops.linear(ops("Mul", ops("Softmax", ops.linear(x, 4, 2)), x), 4, 4)
    assert found(ops) == {}


def test_an_attention_op_with_a_mask_that_every_layer_reads():
    ops = Ops()
    x, mask = ops("input"), ops("Cast", ops("input"), name="mask")
    q, k, v = (ops.linear(x, 4, 4) for _ in range(3))
    ops.linear(ops("aten.scaled_dot_product_attention.default", q, k, v, mask), 4, 4)
    assert "mask" not in found(ops)["attention"]
    assert evidence(ops) == ["aten.scaled_dot_product_attention.default op"]


def swiglu(ops, up):
    x = ops("input")
    gate = ops.linear(x, 4, 8)
    return ops.linear(ops("Mul", ops("Mul", gate, ops("Sigmoid", gate)), up(x)), 8, 4)


def test_a_gated_mlp():
    ops = Ops()
    last = swiglu(ops, lambda x: ops.linear(x, 4, 8))
    assert last in found(ops)["mlp"]
    assert evidence(ops) == ["silu of one projection times another, projected back to the width of the input"]


def test_a_gated_scan_is_no_mlp():
    ops = Ops()
    swiglu(ops, lambda x: ops("SelectiveScan", ops.linear(x, 4, 8)))
    assert found(ops) == {}


def test_a_plain_mlp_and_a_bottleneck():
    ops = Ops()
    wide = ops.linear(ops("Gelu", ops.linear(ops("input"), 4, 16)), 16, 4)
    ops.linear(ops("Gelu", ops.linear(ops("input"), 4, 2)), 2, 4)
    assert [ops.names(one.nodes)[-1] for one in patterns_in(ops.flow)] == [wide]
    assert evidence(ops) == ["gelu of a projection, projected back to the width of the input"]


def test_what_is_no_projection_or_one_of_two_activations_ends_no_mlp():
    ops = Ops()
    x = ops("input")
    ops("Exp", ops("Gelu", ops.linear(x, 4, 16), shape=(2, 8, 16)), shape=(2, 8, 4))
    ops("Gemm", ops("Gelu", ops.linear(x, 4, 16), shape=(2, 8, 16)), ops("parameter", shape=(16, 4)), x)
    assert found(ops) == {}


def rotary(ops, x, *, halves):
    first, second = ops("Slice", x), ops("Slice", x)
    turned = ops("Concat", ops("Neg", second), first) if halves else ops("Concat", first, ops("input"))
    return ops("Add", ops("Mul", x, ops("buffer")), ops("Mul", turned, ops("buffer")), name="turned")


def test_rotary_positions():
    ops = Ops()
    rotary(ops, ops("input", name="x"), halves=True)
    names = found(ops)["rotary"]
    assert "turned" in names and "x" not in names


def test_a_blend_with_something_else_is_not_rotary():
    ops = Ops()
    rotary(ops, ops("input"), halves=False)
    assert found(ops) == {}
