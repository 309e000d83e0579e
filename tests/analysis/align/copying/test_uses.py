"""Where parameters are used: their role, what they wait for, what they lead to."""

import numpy as np

from nbkit.analysis.align.copying.uses import Uses
from tests.analysis.align.makers import execution

X, W, B = np.ones((2, 3), np.float32), np.ones((3, 3), np.float32), np.ones(3, np.float32)


def uses() -> Uses:
    run = execution(
        ("x", None, (), X),
        ("norm.g", None, (), B),
        ("a.w", None, (), W),
        ("a.b", None, (), B),
        ("b.w", None, (), W),
        ("unread.w", None, (), W),
        ("scaled", "aten.mul.Tensor", ("x", "norm.g"), X),
        ("turned", "aten.t.default", ("a.w",), W),
        ("first", "aten.addmm.default", ("a.b", "scaled", "turned"), X),
        ("second", "aten.mm.default", ("first", "b.w"), X),
    )
    return Uses(run, ["norm.g", "a.w", "a.b", "b.w", "unread.w"])


def test_each_parameter_has_a_role_and_waits_for_those_before_it():
    found = {use.name: (use.role, use.needs, use.is_turned) for use in uses().all}
    gain, weight, bias = 1, 2, 4
    assert found == {
        "norm.g": ("gain", 0, None),
        "a.b": ("shift", gain, None),
        "a.w": ("matrix", gain, True),
        "b.w": ("matrix", gain | weight | bias, False),
    }


def test_what_a_parameter_leads_to_are_the_next_products():
    found = uses()
    assert {use.name: found.signatures[use.number, use.role] for use in found.all} == {
        "norm.g": W.size,
        "a.b": W.size,
        "a.w": W.size,
        "b.w": 0,
    }


def test_new_results_are_those_that_a_parameter_adds():
    found = uses()
    names = [found.execution.results[number].name for number in found.new_results(0b1, 0b111)]
    assert names == ["first"]


def test_a_sequence_read_in_steps_uses_each_parameter_as_often():
    steps = [(f"y{step}", "aten.mm.default", ("x", "a.w"), X) for step in range(4)]
    found = Uses(execution(("x", None, (), X), ("a.w", None, (), W), *steps), ["a.w"])
    assert found.steps == 4 and [(use.name, use.meets) for use in found.all] == [("a.w", 2)]
    assert uses().steps == 1
