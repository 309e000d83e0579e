from nbkit.analysis.structure.patterns import patterns_in
from tests.analysis.structure.graphs import Ops


def found(ops):
    return {one.role: ops.names(one.nodes) for one in patterns_in(ops.flow)}


def embedded(ops):
    return ops("Gather", ops("parameter", shape=(96, 4)), ops("input", shape=(2, 8), dtype="int64"), name="rows")


def test_an_embedding_and_the_head_as_wide_as_it_has_rows():
    ops = Ops()
    inner = ops.linear(embedded(ops), 4, 96)
    last = ops.linear(inner, 96, 96)
    assert found(ops) == {"embedding": ["rows"], "head": [last]}


def test_a_row_taken_of_an_activation_is_no_embedding():
    ops = Ops()
    ops("Gather", ops("input", shape=(96, 4)), ops("input", shape=(2, 8), dtype="int64"))
    ops("Gather", ops("parameter", shape=(96, 4)), ops("input", shape=(2, 8), dtype="float32"))
    assert found(ops) == {}


def test_a_loss_and_the_head_that_it_reads():
    ops = Ops()
    head = ops.linear(ops("input"), 4, 50)
    loss = ops("softmax_with_cross_entropy", ops("cast", head), ops("input"), name="loss")
    ops("reduce_mean", loss, name="mean")
    assert found(ops) == {"head": [head], "loss": ["loss", "mean"]}
