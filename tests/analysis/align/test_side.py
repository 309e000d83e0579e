"""Values as they are compared: what masks out scores does not drown their differences."""

import numpy as np
import pytest

from nbkit.analysis.align.side import with_infinities

SCORES = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)


@pytest.mark.parametrize("masked", [0.1, 0.49, 0.9])
def test_what_is_masked_out_is_infinite_however_much_it_is(masked):
    is_masked = np.random.default_rng(1).random(SCORES.shape) < masked
    found = with_infinities(SCORES - 1e4 * is_masked.astype(np.float32))
    assert np.array_equal(np.isneginf(found), is_masked)
    assert np.allclose(found[~is_masked], SCORES[~is_masked])


def test_large_numbers_beside_large_ones_stay():
    for value in (SCORES * 1e4, np.linspace(0, 2e4, 1_000, dtype=np.float32), np.full(8, 1e5, np.float32)):
        assert with_infinities(value) is not None and np.array_equal(with_infinities(value), value)
