"""Results of one side alone: which of them are beginnings, and which were compared in another dtype or are noise."""

import numpy as np
import pytest

from nbkit.analysis.align.alone.results import alone_in
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.relations import in_order
from nbkit.analysis.align.side import Side
from tests.analysis.align.makers import OPS, execution, numbers

X, W = numbers(0, 4, 6), numbers(1, 4, 6)
HALF = {"Cast": lambda value: value.astype(np.float16), "Sum": lambda value: value.sum(0)}


def cast(value: np.ndarray) -> Side:
    """y = x + weight, its cast, and what is made of that."""
    return Side(
        execution(
            ("x", None, [], X),
            ("layer.weight", None, [], W),
            ("y", "Add", ["x", "layer.weight"], X + W),
            ("half", "Cast", ["y"], value),
            ("z", "Neg", ["half"], -value),
            ops=OPS | HALF,
        )
    )


def alone(
    side: Side, differing: set[int], measured: set[int] = frozenset(), matched: tuple[int, ...] = ()
) -> list[str]:
    matches = Matches()
    for number in (0, 1, *matched):
        matches.add(Match(number, number, "values", in_order((4, 6), (4, 6)), agrees=number < 2))
    return [side.results[number].name for number in alone_in(side, 1, matches, differing, measured)]


def test_a_tensor_is_not_alone_whose_cast_was_measured():
    side = cast((X + W).astype(np.float16))
    assert alone(side, {2, 3, 4}, measured=(3,), matched=(3,)) == []
    assert alone(side, {2, 3, 4}, matched=(3,)) == ["y"]


def test_a_cast_is_not_alone_whose_tensor_was_measured():
    side = cast((X + W).astype(np.float16))
    assert alone(side, {3, 4}, measured=(2,), matched=(2,)) == ["z"]  # which nothing says anything of


@pytest.mark.parametrize(("factor", "expected"), [(1, []), (1.01, ["wide"])])
def test_what_is_cast_twice_is_compared_by_what_it_was_at_first(factor, expected):
    half = (X + W).astype(np.float16)
    side = Side(
        execution(
            ("x", None, [], X),
            ("layer.weight", None, [], W),
            ("y", "Add", ["x", "layer.weight"], X + W),
            ("half", "Cast", ["y"], half),
            ("wide", "Cast", ["half"], half.astype(np.float32) * np.float32(factor)),
        )
    )
    assert alone(side, {3, 4}, measured=(2,), matched=(2,)) == expected


def test_a_cast_that_changes_its_tensor_is_alone():
    side = cast(((X + W) * 1.01).astype(np.float16))
    assert alone(side, {3, 4}, measured=(2,), matched=(2,)) == ["half"]


def sums(rows: np.ndarray) -> Side:
    """The sum of the rows of x + weight."""
    return Side(
        execution(
            ("x", None, [], rows),
            ("layer.weight", None, [], W),
            ("y", "Mul", ["x", "layer.weight"], rows * W),
            ("total", "Sum", ["y"], (rows * W).sum(0)),
            ops=OPS | HALF,
        )
    )


def test_what_cancels_but_for_rounding_is_no_beginning():
    rows = np.concatenate([-(X[1:] * W[1:]).sum(0, keepdims=True) / W[0], X[1:]])
    assert 0 < np.abs((rows * W).sum(0)).max() < 1e-6 and alone(sums(rows), {3}) == []
    rows[0] *= np.float32(1.0001)
    assert alone(sums(rows), {3}) == ["total"]


@pytest.mark.parametrize(("op", "value", "expected"), [("Transpose", (X + W).T, []), ("Abs", abs(X + W), ["other"])])
def test_what_only_turns_a_measured_tensor_is_not_alone(op, value, expected):
    side = Side(
        execution(
            ("x", None, [], X),
            ("layer.weight", None, [], W),
            ("y", "Add", ["x", "layer.weight"], X + W),
            ("other", op, ["y"], value),
        )
    )
    assert alone(side, {3}, measured=(2,), matched=(2,)) == expected
