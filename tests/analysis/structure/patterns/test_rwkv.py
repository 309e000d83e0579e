from nbkit.analysis.structure.patterns import patterns_in
from tests.analysis.structure.graphs import Ops


def found(ops):
    return [one.role for one in patterns_in(ops.flow)]


def channel_mix(ops, *, square):
    x = ops("input")
    key = ops("Relu", ops.linear(x, 4, 16))
    value = ops.linear(ops("Mul", key, key) if square else key, 16, 4)
    return ops("Mul", ops("Sigmoid", ops.linear(x, 4, 4)), value)


def test_channel_mix_and_the_mlp_in_it_only_once():
    ops = Ops()
    channel_mix(ops, square=True)
    assert found(ops) == ["channel_mix"]


def test_a_gated_mlp_without_the_square_is_an_mlp():
    ops = Ops()
    channel_mix(ops, square=False)
    assert found(ops) == ["mlp"]


def time_mix(ops, wkv):
    x = ops("input")
    k, v, r = (ops.linear(x, 4, 4) for _ in range(3))
    return ops.linear(ops("Mul", ops("Sigmoid", r), wkv(k, v)), 4, 4)


def test_time_mix_by_its_quotient_of_sums():
    ops = Ops()

    def wkv(k, v):
        weight, old = ops("Exp", k), ops("Exp", ops("Mul", ops("Pad", k), ops("constant")))
        return ops("Div", ops("Add", ops("Mul", weight, v), ops("Mul", old, v)), ops("Add", weight, old))

    time_mix(ops, wkv)
    assert found(ops) == ["time_mix"]


def test_time_mix_by_its_own_op():
    ops = Ops()
    time_mix(ops, lambda k, v: ops("wkv", k, v))
    assert found(ops) == ["time_mix"]


def test_a_gated_quotient_without_exponentials_is_nothing_known():
    ops = Ops()
    time_mix(ops, lambda k, v: ops("Div", v, k))
    assert found(ops) == []
