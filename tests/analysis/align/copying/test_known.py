"""Which values an execution is said to have."""

from dataclasses import replace

import numpy as np
import pytest

from nbkit.analysis.align.copying.known import KnownValues, is_telling
from nbkit.analysis.align.side import Side
from tests.analysis.align.makers import execution

VALUE = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)


def known(value: np.ndarray, steps: tuple[int, int] = (1, 1)) -> KnownValues:
    side = Side(execution(("x", None, (), value), ("y", "Neg", ("x",), value)))
    return KnownValues(side, [1], 1e-4, steps)


@pytest.mark.parametrize("value", [VALUE, VALUE.reshape(15, 4), VALUE.transpose(2, 0, 1)])
def test_the_same_elements_are_known_in_any_order_of_axes(value):
    assert known(VALUE).has(value)


@pytest.mark.parametrize("value", [VALUE * 1.01, VALUE[:2], np.sort(VALUE, axis=None), VALUE[..., ::-1]])
def test_others_are_not(value):
    assert not known(VALUE).has(value)


def test_what_proves_nothing_is_not_known():
    ones = np.ones((3, 4, 5), np.float32)
    assert not known(ones).has(ones)
    assert not is_telling(np.full(5, np.nan)) and not is_telling(np.arange(9))


def test_the_first_step_of_a_sequence_is_known_where_one_side_goes_step_by_step():
    assert known(VALUE, (1, 4)).has(VALUE[:, 0])
    assert not known(VALUE, (1, 4)).has(VALUE[:, 1])
    assert known(VALUE[:, 0], (4, 1)).has(VALUE)
    assert not known(VALUE).has(VALUE[:, 0])


def test_of_a_value_that_was_not_kept_the_statistics_tell():
    made = execution(("x", None, (), VALUE), ("y", "Neg", ("x",), VALUE))
    gone = KnownValues(Side(replace(made, values={0: VALUE})), [1], 1e-4)
    assert gone.has(VALUE) and not gone.has(VALUE * 1.01)
