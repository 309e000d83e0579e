"""Running the right execution with parameters of the left one: what it then has of it, and what is read further on."""

import numpy as np

from nbkit.analysis.align.copying.known import KnownValues
from nbkit.analysis.align.copying.layouts import Option, Source
from nbkit.analysis.align.copying.trial import Placement, Trials
from nbkit.analysis.align.copying.uses import Uses
from tests.analysis.align.makers import execution, numbers

X = numbers(0, 4, 6)
OPS = {"aten.mm.default": np.matmul}


def two_products(seed: int):
    """x @ A @ B, with parameters of its own."""
    first, second = numbers(seed, 6, 6), numbers(seed + 1, 6, 6)
    return execution(
        ("x", None, (), X),
        ("a.w", None, (), first),
        ("b.w", None, (), second),
        ("inner", "aten.mm.default", ("x", "a.w"), X @ first),
        ("y", "aten.mm.default", ("inner", "b.w"), X @ first @ second),
        ops=OPS,
    )


def trials_of(left, right) -> tuple[Trials, list[Option]]:
    """Trials of the right one, and the left parameters as they are."""
    ours = Uses(left, ["a.w", "b.w"])
    known = KnownValues(ours.side, [3, 4], 1e-5)
    options = []
    for number, name in enumerate(("a.w", "b.w")):
        value = left.value(ours.states[number])
        options.append(Option((Source(number, "matrix", name, value),), value, "as it is"))
    return Trials(Uses(right, ["a.w", "b.w"]), known), options


def test_a_trial_hands_on_what_other_parameters_meet():
    left = two_products(1)
    trials, (first, second) = trials_of(left, two_products(5))
    found = trials.run(Placement(), {0: first}, {})
    assert found.found == {3} and found.reaches
    np.testing.assert_allclose(found.values[3], left.value(3), rtol=1e-6)
    last = trials.run(Placement({0: first}, (0b1, 0b1), values=dict(found.values)), {1: second}, {})
    assert last.found == {4} and last.reaches and last.values == {}


def test_a_wrong_parameter_leads_to_nothing_that_is_known():
    trials, (_, second) = trials_of(two_products(1), two_products(5))
    found = trials.run(Placement(), {0: second}, {})
    assert found.found == set() and not found.reaches and [*found.values] == [3]


def test_a_result_is_read_later_while_a_parameter_behind_it_has_no_place():
    trials, _ = trials_of(two_products(1), two_products(5))
    assert trials.is_read_later(3, 0b01) and not trials.is_read_later(3, 0b11) and not trials.is_read_later(4, 0b01)
