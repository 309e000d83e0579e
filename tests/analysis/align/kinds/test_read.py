"""An op that does the same and reads another value: which one, where a norm stands, what is a slice of the same."""

import numpy as np
import pytest

from nbkit.analysis.align.align import align
from nbkit.analysis.align.first_divergence import first_divergence
from tests.analysis.align.kinds.regions import layer_norm
from tests.analysis.align.makers import Step, execution, numbers

X, W, V = numbers(0, 4, 6), numbers(1, 6, 6), numbers(2, 6, 6)
GAIN = 1 + numbers(3, 6) / 8
OPS = {
    "Mul": np.multiply,
    "Add": np.add,
    "MatMul": np.matmul,
    "Tanh": np.tanh,
    "Mix": lambda value, other: np.float32(0.7) * value + np.float32(0.35) * other,
    "LayerNorm": lambda value, gain: layer_norm(value, weight=gain),
    "Reshape": lambda value: value[None],
}
START: list[Step] = [
    ("x", None, [], X),
    ("in.weight", None, [], W),
    ("norm.weight", None, [], GAIN),
    ("w.weight", None, [], V),
    ("e", "MatMul", ["x", "in.weight"], X @ W),
]


def run(*ops: tuple[str, str, list[str]]):
    """Returns the execution of ops, by name, op and what it reads, behind the start."""
    values = {name: value for name, _, _, value in START}
    steps = [*START]
    for name, op, sources in ops:
        values[name] = OPS[op](*(values[source] for source in sources))
        steps.append((name, op, sources, values[name]))
    return execution(*steps, ops=OPS)


@pytest.mark.parametrize("is_reshaped", [True, False])
def test_a_norm_before_a_block_and_one_behind_its_sum_are_named(is_reshaped):
    last = ("c", "Reshape", ["s"]) if is_reshaped else ("c", "Mul", ["s", "norm.weight"])
    read = "c" if is_reshaped else "s"
    behind = run(
        ("h", "MatMul", ["e", "w.weight"]),
        ("s", "Add", ["e", "h"]),
        last,
        ("n", "LayerNorm", [read, "norm.weight"]),
        ("z", "MatMul", ["n", "w.weight"]),
    )
    before = run(
        ("n", "LayerNorm", ["e", "norm.weight"]),
        ("h", "MatMul", ["n", "w.weight"]),
        ("s", "Add", ["e", "h"]),
        ("z", "MatMul", ["s", "w.weight"]),
    )
    first = first_divergence(align(behind, before))
    assert (first["left"]["name"], first["right"]["name"], first["kind"]) == ("n", "n", "norm_place")
    assert "The right one normalizes what the block reads, the left one the sum behind it." in first["message"]


@pytest.mark.timeout(10)
def test_a_norm_behind_a_block_that_many_ways_lead_through_is_named_at_once():
    """Each op of the block reads the last one twice: there are a billion ways, of 30 ops."""
    block = [(f"h{number + 1}", "Mix", [f"h{number}", f"h{number}"]) for number in range(30)]
    behind = run(
        ("h0", "MatMul", ["e", "w.weight"]),
        *block,
        ("s", "Add", ["e", "h30"]),
        ("n", "LayerNorm", ["s", "norm.weight"]),
        ("z", "MatMul", ["n", "w.weight"]),
    )
    before = run(
        ("n", "LayerNorm", ["e", "norm.weight"]),
        ("h0", "MatMul", ["n", "w.weight"]),
        *block,
        ("s", "Add", ["e", "h30"]),
        ("z", "MatMul", ["s", "w.weight"]),
    )
    assert first_divergence(align(behind, before))["kind"] == "norm_place"


@pytest.mark.parametrize(("batch", "heads"), [(2, 2), (1, 4)])
def test_heads_that_views_repeat_in_another_order_are_named_though_batch_and_heads_are_one_axis(batch, heads):
    keys = numbers(4, 4, 4, 6)

    def grouped(lead: tuple[int, ...], repeated: tuple[int, ...]):
        ops = OPS | {
            "Unsqueeze": lambda value: value.reshape(*lead, 4, 6),
            "Expand": lambda value: np.broadcast_to(value, (*repeated, 4, 6)),
            "Flatten": lambda value: value.reshape(12, 4, 6),
        }
        steps: list[Step] = [("x", None, [], keys), ("w.weight", None, [], W), ("q", None, [], numbers(5, 12, 6, 4))]
        values = {name: value for name, _, _, value in steps}
        for name, op, sources in (
            ("k", "MatMul", ["x", "w.weight"]),
            ("u", "Unsqueeze", ["k"]),
            ("e", "Expand", ["u"]),
            ("r", "Flatten", ["e"]),
            ("s", "MatMul", ["r", "q"]),
        ):
            values[name] = ops[op](*(values[source] for source in sources))
            steps.append((name, op, sources, values[name]))
        return execution(*steps, ops=ops)

    left = grouped((batch, heads, 1), (batch, heads, 3))
    first = first_divergence(align(left, grouped((batch, 1, heads), (batch, 3, heads))))
    assert (first["left"]["name"], first["kind"]) == ("s", "repeated_heads")
    assert f"repeats its {heads} key and value heads in another order" in first["message"]


def test_a_number_that_one_side_computes_is_named_by_what_is_done_with_it():
    def moved(number: float, *, is_computed: bool):
        half = np.array(number, np.float32)
        made: list[Step] = [("half", "Constant", [], half)]
        if is_computed:
            made = [("of", "Constant", [], np.arctanh(half)), ("half", "Tanh", ["of"], np.tanh(np.arctanh(half)))]
        value = X @ W + made[-1][3]
        return execution(
            *START, *made, ("y", "Add", ["e", "half"], value), ("z", "Tanh", ["y"], np.tanh(value)), ops=OPS
        )

    left = moved(0.5, is_computed=False)
    assert first_divergence(align(left, moved(0.5, is_computed=True))) is None
    first = first_divergence(align(left, moved(0.25, is_computed=True)))
    assert (first["left"]["name"], first["right"]["name"], first["kind"]) == ("y", "y", "argument")
    assert "The number that Add reads is 0.5 on the left, 0.25 on the right." in first["message"]
    assert first["kind_explained"] < 1e-3
