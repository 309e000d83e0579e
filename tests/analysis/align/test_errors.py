"""Local errors: only what matches change is computed again, and nothing where both sides read the very same."""

from dataclasses import replace

import numpy as np
import pytest

from nbkit.analysis.align.errors import LocalErrors, metrics_of
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.relations import in_order
from nbkit.analysis.align.side import Side
from tests.analysis.align.makers import OPS, execution, numbers

X = numbers(0, 4, 6)


def chain(value, asked=None):
    """neg, tanh, neg of a value; `asked` gets what is to be computed again."""
    less, bent = -value, np.tanh(-value)
    steps = [
        ("x", None, [], value), ("less", "Neg", ["x"], less), ("bent", "Tanh", ["less"], bent),
        ("y", "Neg", ["bent"], -bent),
    ]  # fmt: skip
    found = execution(*steps, ops=OPS)
    run = found.recompute
    return replace(found, recompute=lambda given, wanted: (asked.append(list(wanted)), run(given, wanted))[1])


def pairs(*which):
    matches = Matches()
    for number in which:
        matches.add(Match(number, number, "values", in_order(X.shape, X.shape), agrees=True))
    return matches


def test_what_reads_the_same_bits_is_not_run_again():
    asked = []
    measured = LocalErrors(Side(chain(X)), Side(chain(X.copy(), asked)))
    found = measured.of(pairs(0, 1, 2, 3), (set(), set()))
    assert (asked, [(number, local.error) for number, local in found.items()]) == ([], [(1, 0.0), (2, 0.0), (3, 0.0)])


def test_only_what_a_match_changes_is_run_again():
    asked = []
    measured = LocalErrors(Side(chain(X)), Side(chain(X * np.float32(1 + 1e-6), asked)))
    before = measured.of(pairs(0, 1, 2, 3), (set(), set()))
    assert asked == [[1, 2, 3]]
    assert measured.of(pairs(0, 1, 2, 3), (set(), set())) == before
    assert asked == [[1, 2, 3]]
    after = measured.of(pairs(0, 1, 3), (set(), set()))
    assert asked[1:] == [[3]]
    assert (after[1], after[3].read, before[3].read) == (before[1], (1,), (2,))


@pytest.mark.parametrize("factor", [1.0, 1 + 1e-6])
def test_a_pair_measured_with_others_has_the_metrics_it_has_alone(factor):
    values = [numbers(seed, size) for seed, size in enumerate((3, 50_000, 70))]
    values[1][5], values[2][0] = np.nan, np.inf
    steps = [[(f"r{at}", None, [], value * np.float32(by)) for at, value in enumerate(values)] for by in (1, factor)]
    sides = [Side(execution(*of_side)) for of_side in steps]
    matches = [Match(at, at, "values", in_order(value.shape, value.shape), True) for at, value in enumerate(values)]
    together = metrics_of(*sides, matches)
    assert together == [metrics_of(*sides, [match])[0] for match in matches]
    assert [row["left_nan_count"] + row["right_inf_count"] for row in together] == [0, 1, 1]
    assert all((row["max_ulp"] == 0) == (factor == 1) for row in together)
    for row, value in zip(together, values, strict=True):
        finite = value[np.isfinite(value)].astype(np.float64)
        error = np.abs((finite.astype(np.float32) * np.float32(factor)).astype(np.float64) - finite)
        assert row["max_abs_error"] == error.max()
        assert row["mean_abs_error"] == pytest.approx(error.sum() / value.size)


def test_a_mask_beside_one_that_lets_nothing_through_is_compared():
    def masked(op):
        mask = ops[op](X)
        return Side(execution(("x", None, [], X), ("mask", op, ["x"], mask), ops=ops))

    ops = {"More": lambda value: value > 10, "Less": lambda value: value < 10}
    found = LocalErrors(masked("More"), masked("Less")).of(pairs(0, 1), (set(), set()))
    assert found[1].error == np.inf > found[1].allowed
