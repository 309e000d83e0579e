"""Values: what is kept is a copy, and what does not fit is counted."""

import numpy as np
import pytest

from nbkit.trace.executions.values import Values


def test_a_kept_value_shares_no_memory():
    values, array = Values(), np.ones(3)
    values.put(0, array)
    array[:] = 2
    assert values.get(0).tolist() == [1, 1, 1]
    assert values.get(1) is None


def test_a_kept_value_is_not_written_to():
    values = Values()
    values.put(0, np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        values.get(0)[0] = 2


def test_a_value_that_is_its_own_is_kept_as_it_is():
    values, array = Values(), np.ones(3)
    values.put(0, array, is_own=True)
    assert np.shares_memory(values.get(0), array)
    with pytest.raises(ValueError, match="read-only"):
        values.get(0)[0] = 2.0


def test_what_does_not_fit_is_left_out_and_counted():
    values = Values(kept_bytes=40)
    for number, length in enumerate((4, 2, 1)):
        values.put(number, np.ones(length))
    assert [values.get(number) is not None for number in range(3)] == [True, False, True]
    assert values.left_out == 1
