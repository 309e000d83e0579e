"""Features: moments of the finite elements, and what reshaping and permuting does not change."""

import os
import subprocess
import sys

import numpy as np
import pytest

from nbkit.trace.executions.features import features_in_order, features_of, symmetric_of

VALUE = np.random.default_rng(0).standard_normal((3, 4, 5))


def test_moments_are_of_the_finite_elements():
    found = features_of(np.array([np.nan, np.inf, -np.inf, 3.0, -4.0, 1.0]))
    assert (found.numel, found.nan_count, found.inf_count, found.distinct) == (6, 1, 2, 3)
    assert (found.mean, found.mean_abs, found.min, found.max) == pytest.approx((0, 8 / 3, -4, 3))
    assert found.rms == pytest.approx((26 / 3) ** 0.5)


def test_a_reshaped_tensor_has_the_same_projections():
    assert features_of(VALUE).projections == pytest.approx(features_of(VALUE.reshape(12, 5)).projections)


def test_a_permuted_tensor_has_the_same_symmetric_projections_alone():
    whole, moved = features_of(VALUE), features_of(VALUE.transpose(2, 0, 1))
    assert moved.symmetric == pytest.approx(whole.symmetric)
    assert moved.projections != pytest.approx(whole.projections)


def test_noise_moves_projections_by_about_as_much():
    noisy = VALUE * (1 + 1e-5 * np.random.default_rng(1).standard_normal(VALUE.shape))
    difference = np.subtract(features_of(VALUE).projections, features_of(noisy).projections)
    assert 0 < np.abs(difference).max() < 1e-3


@pytest.mark.parametrize("value", [np.zeros((2, 3)), np.zeros((0, 3)), np.full(4, np.nan)])
def test_without_finite_numbers_other_than_zero_projections_are_zero(value):
    found = features_of(value)
    assert (found.rms, set(found.projections), set(found.symmetric)) == (0.0, {0.0}, {0.0})


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float16, np.complex64])
def test_any_dtype_is_taken(dtype):
    found = features_of(np.array([[1, 0], [1, 1]]).astype(dtype))
    assert found.max == 1.0 and found.numel == (8 if dtype is np.complex64 else 4)


def test_the_largest_numbers_do_not_overflow():
    assert features_of(np.array([1e300, -1e300])).rms == pytest.approx(1e300)
    assert features_of(VALUE * 1e200).symmetric == pytest.approx(features_of(VALUE).symmetric)


def test_a_long_tensor_is_projected_in_blocks():
    long = np.random.default_rng(2).standard_normal(10_000)
    assert features_of(long).projections == pytest.approx(features_of(2 * long).projections)


@pytest.mark.parametrize("shape", [(12, 5), (60,), (3, 4, 5), (3, 1, 20)])
def test_what_sees_the_order_of_elements_alone_is_the_same_in_another_shape(shape):
    value = np.where(VALUE > 2, np.inf, VALUE)
    known = features_in_order(value)
    assert features_in_order(value.reshape(shape)) == known
    assert symmetric_of(value.reshape(shape), known) == features_of(value.reshape(shape)).symmetric


def test_a_tensor_of_many_pieces_has_the_features_of_the_whole():
    value = np.random.default_rng(3).standard_normal((70, 1_000))
    value[::7] = -np.inf
    found, finite = features_of(value), value[np.isfinite(value)]
    assert (found.inf_count, found.distinct) == (10_000, 64)
    assert (found.mean, found.rms) == pytest.approx((finite.mean(), np.sqrt((finite**2).mean())))
    assert (found.min, found.max) == (finite.min(), finite.max())


@pytest.mark.parametrize("shape", [(2, 64, 97), (64, 128), (128, 64), (7, 4_096)])
def test_a_constant_column_makes_no_constant_tensor(shape):
    values = np.random.default_rng(0).standard_normal(shape)
    for column in (0, shape[-1] - 1):
        values[..., column] = 0
        assert features_of(values).distinct > 60


def test_a_large_tensor_wakes_no_threads_of_a_blas():
    code = (
        "import time, numpy as np\n"
        "from nbkit.trace.executions.features import features_in_order\n"
        "value = np.ones((1_000, 2_001), dtype=np.float32)\n"
        "value[0, 0] = 2\n"
        "before = time.process_time() - time.thread_time()\n"
        "features_in_order(value)\n"
        "print(time.process_time() - time.thread_time() - before)\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 0.001
