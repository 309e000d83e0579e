"""Aligning two made executions: where they first diverge, what is local, what is inside a fused op."""

import numpy as np
import pytest

from nbkit.analysis.align.align import align
from nbkit.analysis.align.first_divergence import first_divergence
from nbkit.analysis.align.frames import alignment_frame
from tests.analysis.align.makers import OPS, Step, execution, numbers

X, W = numbers(0, 4, 6), numbers(1, 4, 6)


def scaled(factor: float):
    """tanh(-(x * factor + weight))"""
    scalar = np.array(factor, np.float32)
    added = X * scalar + W
    return execution(
        ("x", None, [], X),
        ("layer.weight", None, [], W),
        ("factor", None, [], scalar),
        ("scaled", "Mul", ["x", "factor"], X * scalar),
        ("sum", "Add", ["scaled", "layer.weight"], added),
        ("less", "Neg", ["sum"], -added),
        ("y", "Tanh", ["less"], np.tanh(-added)),
        ops=OPS,
    )


def test_equal_executions_have_no_divergence():
    found = align(scaled(0.5), scaled(0.5))
    assert first_divergence(found) is None
    assert set(alignment_frame(found)["mark"]) == {"="}


def test_a_wrong_scalar_is_where_it_begins():
    first = first_divergence(align(scaled(0.5), scaled(0.25)))
    assert (first["left"]["name"], first["right"]["name"]) in {("factor", "factor"), ("scaled", "scaled")}
    assert first["error"] > 0.4 and first["message"]


def test_what_follows_a_wrong_op_is_propagated():
    wrong = dict(OPS, Mul=lambda left, right: left * right * np.float32(1.5))
    value = wrong["Mul"](X, np.float32(0.5)) + W
    steps = [
        ("x", None, [], X),
        ("layer.weight", None, [], W),
        ("factor", None, [], np.array(0.5, np.float32)),
        ("scaled", "Mul", ["x", "factor"], value - W),
        ("sum", "Add", ["scaled", "layer.weight"], value),
        ("less", "Neg", ["sum"], -value),
        ("y", "Tanh", ["less"], np.tanh(-value)),
    ]
    found = align(scaled(0.5), execution(*steps, ops=wrong))
    rows = alignment_frame(found).set_index("name")["error_class"]
    assert first_divergence(found)["left"]["name"] == "scaled"
    assert rows[["scaled", "sum", "less", "y"]].tolist() == ["local", "propagated", "propagated", "propagated"]


def test_an_op_that_is_wrong_behind_another_one_is_a_beginning_of_its_own():
    wrong = dict(OPS, Mul=lambda left, right: left * right * np.float32(1.5), Tanh=lambda value: 2 * np.tanh(value))
    scaled_ = wrong["Mul"](X, np.float32(0.5))
    steps = [
        ("x", None, [], X),
        ("layer.weight", None, [], W),
        ("factor", None, [], np.array(0.5, np.float32)),
        ("scaled", "Mul", ["x", "factor"], scaled_),
        ("sum", "Add", ["scaled", "layer.weight"], scaled_ + W),
        ("less", "Neg", ["sum"], -scaled_ - W),
        ("y", "Tanh", ["less"], wrong["Tanh"](-scaled_ - W)),
    ]
    found = align(scaled(0.5), execution(*steps, ops=wrong))
    rows = alignment_frame(found).reset_index().set_index("name")
    names = ["scaled", "sum", "less", "y"]
    assert rows.loc[names, "error_class"].tolist() == ["local", "propagated", "propagated", "local"]
    assert rows.loc[names, "origin_id"].tolist() == [rows["index"]["scaled"]] * 3 + [rows["index"]["y"]]
    assert first_divergence(found)["left"]["name"] == "scaled"


def test_ops_in_another_order_behind_a_wrong_one_are_no_beginnings():
    """Tanh is odd: by the graph its pair would be the right one's, which gives the negative."""

    def odd(factor: float, first: str, second: str):
        ops = dict(OPS, Mul=lambda left, right: left * right * np.float32(factor))
        product = ops["Mul"](X, W)
        made = ops[first](product)
        odd = ops[second](made)
        steps = [
            ("x", None, [], X),
            ("layer.weight", None, [], W),
            ("product", "Mul", ["x", "layer.weight"], product),
            ("made", first, ["product"], made),
            ("odd", second, ["made"], odd),
            ("y", "Add", ["odd", "layer.weight"], odd + W),
        ]
        return execution(*steps, ops=ops)

    found = align(odd(1, "Tanh", "Neg"), odd(1.5, "Neg", "Tanh"))
    rows = alignment_frame(found)
    assert rows.loc[rows["error_class"] == "local", "name"].tolist() == ["product"]
    assert [event.match.right for event in found.events] == [2]


def test_the_first_divergence_has_its_local_error():
    wrong = dict(OPS, Neg=lambda value: value * np.float32(-1.5))
    added = X * np.float32(0.5) + W
    steps = [
        ("x", None, [], X),
        ("layer.weight", None, [], W),
        ("factor", None, [], np.array(0.5, np.float32)),
        ("scaled", "Mul", ["x", "factor"], X * np.float32(0.5)),
        ("sum", "Add", ["scaled", "layer.weight"], added),
        ("less", "Neg", ["sum"], -1.5 * added),
        ("y", "Tanh", ["less"], np.tanh(-1.5 * added)),
    ]
    first = first_divergence(align(scaled(0.5), execution(*steps, ops=wrong)))
    assert first["left"]["name"] == "less"
    assert np.isclose(first["local_error"], 0.5, rtol=1e-3)
    assert first["error_before"] < 1e-6


def test_a_difference_inside_a_fused_op_begins_where_the_other_side_no_longer_agrees():
    product = X * W
    inputs = [("x", None, [], X), ("layer.weight", None, [], W)]
    written = execution(
        *inputs,
        ("product", "Mul", ["x", "layer.weight"], product),
        ("tanh", "Tanh", ["product"], np.tanh(product)),
        ("less", "Neg", ["tanh"], -np.tanh(product)),
        ("y", "Tanh", ["less"], -np.tanh(np.tanh(product))),
        ops=OPS,
    )
    wrong = np.float32(-1.5) * np.tanh(product)
    fused = execution(
        *inputs,
        ("fused", "Fused", ["x", "layer.weight"], wrong),
        ("y", "Tanh", ["fused"], np.tanh(wrong)),
        ops=OPS | {"Fused": lambda x, weight: np.float32(-1.5) * np.tanh(x * weight)},
    )
    for sides, names in (((written, fused), ["product", "fused"]), ((fused, written), ["fused", "product"])):
        first = first_divergence(align(*sides))
        assert [first[side]["name"] for side in ("left", "right")] == names


def test_an_execution_that_cannot_run_again_is_aligned_by_its_values():
    steps = [("x", None, [], X), ("a", "Neg", ["x"], -X), ("b", "Tanh", ["a"], np.tanh(-X))]
    changed = [*steps[:2], ("b", "Tanh", ["a"], np.tanh(-X) * np.float32(1.5))]
    found = align(execution(*steps), execution(*changed))
    assert found.local == {} and {2} == found.differing[0]


def test_a_wrong_op_is_named_though_its_error_is_lost_in_what_is_made_of_it():
    """As a wrong convolution in bfloat16 beside a large residual: all that follows agrees within that dtype's noise."""

    def residual(sign: int, *others: Step):
        ops = dict(OPS, Mul=lambda left, right: sign * left * right)
        product = ops["Mul"](X, W)
        small = product * np.float32(1e-8)
        return execution(
            ("x", None, [], X),
            ("layer.weight", None, [], W),
            ("factor", None, [], np.array(1e-8, np.float32)),
            ("product", "Mul", ["x", "layer.weight"], product),
            ("small", "Scale", ["product", "factor"], small),
            *others,
            ("y", "Add", ["x", "small"], X + small),
            ops=dict(ops, Scale=np.multiply),
        )

    assert first_divergence(align(residual(1), residual(1))) is None
    # The same code, and one that computes something besides.
    for right in (residual(-1), residual(-1, ("besides", "Tanh", ["x"], np.tanh(X)))):
        first = first_divergence(align(residual(1), right))
        assert (first["left"]["name"], first["right"]["name"]) == ("product", "product")
        assert first["local_error"] == 2


def test_what_cancels_is_no_divergence():
    """A gradient of a bias is a sum that may be zero but for rounding; a float64 side has another rest of it."""
    values = np.concatenate([np.full(500, 0.1), np.full(500, -0.1)])[None]

    def summed(dtype, rest):
        total = np.array([[rest]], dtype)
        return execution(
            ("x", None, [], values.astype(dtype)),
            ("sum", "Sum", ["x"], total),
            ops={
                "Sum": lambda value: np.full((1, 1), rest, dtype) + np.sum(value - values.astype(dtype)).astype(dtype)
            },
        )

    assert first_divergence(align(summed(np.float32, 0.0), summed(np.float64, 3e-18))) is None
    assert first_divergence(align(summed(np.float32, 0.0), summed(np.float64, 0.1))) is not None


def test_nan_that_one_side_alone_makes_begins_there_though_nothing_can_run_again():
    steps = [("x", None, [], X), ("a", "Neg", ["x"], -X)]

    def run(b: np.ndarray):
        return execution(*steps, ("b", "Softmax", ["a"], b), ("c", "Neg", ["b"], -b))

    broken = np.tanh(X)
    broken[1] = np.nan
    first = first_divergence(align(run(np.tanh(X)), run(broken)))
    assert (first["left"]["name"], first["right"]["name"], first["kind"]) == ("b", "b", "nan")
    assert first_divergence(align(run(broken), run(broken))) is None


def test_a_weight_that_is_off_by_more_than_its_rounding_is_where_it_begins():
    """By less than what may add up from layer to layer; what is made of it differs, too."""

    def run(weight: np.ndarray):
        steps = [
            ("x", None, [], X),
            ("layer.weight", None, [], weight),
            ("y", "Mul", ["x", "layer.weight"], X * weight),
        ]
        return execution(*steps, ("z", "Neg", ["y"], -X * weight), ops=OPS)

    rounded, other = (run((W * np.float64(factor)).astype(np.float32)) for factor in (1 + 2e-7, 1 + 3e-5))
    found = align(run(W), rounded)
    assert first_divergence(found) is None and set(alignment_frame(found)["mark"]) == {"="}
    found = align(run(W), other)
    first, marks = first_divergence(found), alignment_frame(found).set_index("name")["mark"]
    assert first["right"]["name"] == "layer.weight" and np.isclose(first["error"], 3e-5, rtol=0.01)
    assert marks["x"] == "=" and "=" not in [*marks[["layer.weight", "y", "z"]]]


@pytest.mark.parametrize("shape", [(4, 12), (4, 2, 6)])
def test_a_fused_product_that_is_wrong_in_one_part_is_where_it_begins(shape):
    """Its other part agrees, and the weights do: not the slice is wrong, but what it is taken of."""
    q, k = numbers(2, 6, 6), numbers(3, 6, 6)
    ops = {"MatMul": np.matmul, "Tanh": np.tanh, "Mul": np.multiply}
    two = execution(
        ("x", None, [], X),
        ("q.weight", None, [], q),
        ("k.weight", None, [], k),
        ("q", "MatMul", ["x", "q.weight"], X @ q),
        ("k", "MatMul", ["x", "k.weight"], X @ k),
        ("t", "Tanh", ["k"], np.tanh(X @ k)),
        ("y", "Mul", ["q", "t"], X @ q * np.tanh(X @ k)),
        ops=ops,
    )

    def fused(factor: float):
        weight, scale = np.concatenate([q, k], 1), np.repeat(np.float32([1, factor]), 6)
        product = X @ weight * scale
        first, second = product[:, :6], product[:, 6:]
        parts = {
            "Reshape": lambda value: value.reshape(shape),
            "aten.select.int": lambda value: value.reshape(4, 12)[:, :6],
            "aten.slice.Tensor": lambda value: value.reshape(4, 12)[:, 6:],
        }
        return execution(
            ("x", None, [], X),
            ("qk.weight", None, [], weight),
            ("p", "MatMul", ["x", "qk.weight"], product),
            ("r", "Reshape", ["p"], product.reshape(shape)),
            ("s", "aten.select.int", ["r"], first),
            ("u", "aten.slice.Tensor", ["r"], second),
            ("t", "Tanh", ["u"], np.tanh(second)),
            ("y", "Mul", ["s", "t"], first * np.tanh(second)),
            ops=ops | parts | {"MatMul": lambda x, weight: x @ weight * scale},
        )

    assert first_divergence(align(two, fused(1))) is None
    first = first_divergence(align(two, fused(1.5)))
    assert (first["left"]["name"], first["right"]["name"]) == ("k", "p")
