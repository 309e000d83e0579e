"""Tests which op of one run is which of another, from literal runs."""

from nbkit.divergence.alignment import aligned, calls_of
from nbkit.step.step import Step
from tests.support.fakes import make_ops, make_tensors


def run(*ops):
    """Makes calls of ops from "name", "module name" or "module name shape"."""
    rows = []
    for text in ops:
        *module, name = text.split(" [")[0].split(" ")
        rows.append(("".join(module), name, "[3]" if text.endswith("[3]") else "[2]"))
    frame = make_ops(*({"op": f"aten.{name}", "module": module} for module, name, _ in rows))
    tensors = make_tensors(*((number, "output", number) for number in range(len(rows))))
    tensors["shape"] = [shape for *_, shape in rows]
    return calls_of(Step(frame, tensors))


def pairs(left, right):
    ids = [(pair.left, pair.right, pair.evidence) for pair in aligned(run(*left), run(*right))]
    return [(a and a.op_id, b and b.op_id, evidence) for a, b, evidence in ids]


def matched(*numbers):
    return [(a, b, "name") for a, b in numbers]


def test_equal_runs_match_one_to_one():
    ops = ["mm.default", "relu.default", "mm.default"]
    assert pairs(ops, ops) == matched((0, 0), (1, 1), (2, 2))


def test_an_op_of_one_run_only_stands_alone():
    left = ["mm.default", "_to_copy.default", "relu.default"]
    right = ["mm.default", "relu.default", "sum.default"]
    assert pairs(left, right) == [(0, 0, "name"), (1, None, None), (2, 1, "name"), (None, 2, None)]


def test_another_overload_is_the_same_op_and_another_op_may_take_its_place():
    left, right = ["exp.default", "gelu.default", "sum.default"], ["exp_.default", "relu.default", "sum.dim_IntList"]
    assert pairs(left, right) == [(0, 0, "name"), (1, 1, "structure"), (2, 2, "name")]


def test_what_takes_its_place_has_the_same_shape_and_module_and_is_no_cast():
    assert pairs(["a gelu.default"], ["b relu.default"]) == [(0, None, None), (None, 0, None)]
    assert pairs(["a gelu.default [2]"], ["a relu.default [3]"]) == [(0, None, None), (None, 0, None)]
    assert pairs(["gelu.default"], ["_to_copy.default"]) == [(0, None, None), (None, 0, None)]


def test_modules_keep_equal_ops_apart():
    left, right = ["a mm.default", "b mm.default", "c mm.default"], ["a mm.default", "c mm.default"]
    assert pairs(left, right) == [(0, 0, "name"), (1, None, None), (2, 1, "name")]


def test_an_empty_run_has_no_counterparts():
    assert pairs([], []) == []
    assert pairs(["mm.default"], []) == [(0, None, None)]
