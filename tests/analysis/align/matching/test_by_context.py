"""Matching by context: names of state, what proves nothing by itself, and what differs to the end."""

from dataclasses import replace

import numpy as np

from nbkit.analysis.align.align import align
from nbkit.analysis.align.matching.by_context import canonical_order
from nbkit.analysis.align.side import Side
from nbkit.trace.executions.values import Values
from tests.analysis.align.makers import execution, numbers

X, A, B, C = (numbers(seed, 4, 6) for seed in range(4))


def evidence(alignment) -> dict[tuple[str, str], tuple[str, bool]]:
    left, right = alignment.left.results, alignment.right.results
    return {
        (left[match.left].name, right[match.right].name): (match.evidence, match.agrees)
        for match in alignment.matches.all
    }


def test_state_with_other_values_is_paired_by_its_name():
    sides = [execution(("layer.weight", None, [], value), ("y", "Neg", ["layer.weight"], -value)) for value in (A, B)]
    found = evidence(align(*sides))
    assert found["layer.weight", "layer.weight"] == ("name", False)


def test_inputs_in_another_order_are_paired_by_name():
    first, second = ("first", None, [], A), ("second", None, [], B)
    end = ("y", "Add", ["first", "second"], A + B)
    assert set(evidence(align(execution(first, second, end), execution(second, first, end)))) == {
        (name, name) for name in ("first", "second", "y")
    }


def test_scalars_are_paired_where_they_are_read():
    two = np.array(2.0, np.float32)
    steps = [("x", None, [], X), ("two", None, [], two), ("y", "Mul", ["x", "two"], X * two)]
    renamed = [("x", None, [], X), ("c", None, [], two), ("y", "Mul", ["x", "c"], X * two)]
    assert evidence(align(execution(*steps), execution(*renamed)))["two", "c"] == ("structure", True)


def test_scalars_whose_values_were_not_kept_are_paired_by_their_statistics():
    def run(name, number):
        two = np.array(number, np.float32)
        made = execution(("x", None, [], X), (name, None, [], two), ("y", "Mul", ["x", name], X * 2))
        return replace(made, values=Values())

    assert evidence(align(run("two", 2), run("c", 2)))["two", "c"] == ("structure", True)
    assert ("two", "c") not in evidence(align(run("two", 2), run("c", 3)))


def test_what_reads_a_pair_found_by_its_place_among_the_others_is_a_pair():
    start = ("x", None, [], X)
    sides = [
        execution(start, ("a", first, ["x"], A * of), ("b", "Tanh", ["a"], B * of), (end, last, ["b"], C * of))
        for first, end, last, of in (("Exp", "y", "Mul", 1), ("Abs", "z", "Add", 3))
    ]
    found = evidence(align(*sides))
    assert (found["b", "b"], found["y", "z"]) == (("structure", False),) * 2
    assert ("a", "a") not in found


def test_what_reads_the_same_input_is_a_pair_though_its_sum_is_read_in_another_order():
    sides = [
        execution(
            ("first", None, [], A),
            ("second", None, [], B),
            ("a", tanh, ["first"], A * of),
            ("b", tanh, ["second"], B * of),
            ("y", "Add", order, C * of),
        )
        for of, tanh, order in ((2, "Tanh", "ab"), (3, "aten.tanh.default", "ba"))
    ]
    found = evidence(align(*sides))
    assert (found["a", "a"], found["b", "b"]) == (("structure", False),) * 2


def test_what_differs_is_paired_along_the_dataflow():
    left = execution(("x", None, [], X), ("a", "Tanh", ["x"], A), ("b", "Neg", ["a"], -A))
    right = execution(("x", None, [], X), ("i", "Identity", ["x"], X), ("a", "Tanh", ["i"], B), ("b", "Neg", ["a"], -B))
    found = evidence(align(left, right))
    assert (found["a", "a"], found["b", "b"]) == (("structure", False), ("name", False))  # an output has its name


def test_outputs_of_one_name_are_paired_whatever_they_are_like():
    grads = {f"grad of {name}": value for name, value in (("first", A), ("second", B))}
    swapped = {f"grad of {name}": value * 3 for name, value in (("first", B), ("second", A))}
    sides = [
        execution(("x", None, [], X), *((name, "Exp", ["x"], value) for name, value in each.items()), outputs=[*each])
        for each in (grads, swapped)
    ]
    assert set(evidence(align(*sides))) == {("x", "x"), *((name, name) for name in grads)}


def test_the_canonical_order_is_that_of_the_dataflow():
    end = ("c", "Add", ["a", "b"], A + B)
    steps = [("x", None, [], X), ("a", "Exp", ["x"], A), ("b", "Abs", ["x"], B)]
    orders = []
    for side in (Side(execution(*steps, end)), Side(execution(steps[0], steps[2], steps[1], end))):
        orders.append([side.results[number].name for number in canonical_order(side)])
    assert orders == [["x", "a", "b", "c"]] * 2
