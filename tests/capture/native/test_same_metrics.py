"""The native part of opdiff measures a pair as nbkit/numerics/metrics.py does."""

import math

import numpy as np
import pytest
import torch

from nbkit.capture.native.library import library
from nbkit.numerics.metrics import Metrics, measure_one
from nbkit.numerics.precision import precision_of

DTYPES = ["float64", "float32", "bfloat16", "float16"]
# Around the lengths of a step of the loop (16), of a block (2,048), and of what Python measures at a time (32,768).
LENGTHS = [1, 2, 15, 16, 17, 100, 2047, 2048, 2049, 33_000]
# Sums in another order; what is a maximum or a count is the same to the bit, apart from the level of the noise ratio.
SUMS = ["sum_abs_error", "sum_error", "sum_squared_error", "inner", "actual_square", "expected_square", "noise_ratio"]
HOSTILE = {
    "nan": [math.nan, math.nan],
    "inf": [math.inf, math.inf],
    "minus inf": [-math.inf, -math.inf],
    "zeros of both signs": [0.0, -0.0],
    "x over zero": [1.0, 0.0],
    "zero": [0.0, 1.0],
    "other sign": [-1.0, 1.0],
    "other sign of a tiny number": [-1e-40, 1e-40],
    "subnormal": [1e-45, 1.4e-45],
    "subnormal of float64": [5e-324, 1e-323],
    "beside the smallest normal": [2**-126, 2**-126 * (1 - 2**-30)],
    "beside the smallest normal of float16": [2**-14, 2**-14 * (1 - 2**-12)],
    "large": [3e38, 3.1e38],
    "huge": [1e300, 1.1e300],
    "overflowed": [math.inf, 1e39],
    "far off": [1e30, 1e-30],
}


def random_pair(dtype, length):
    generator = torch.Generator().manual_seed(length)
    expected = torch.randn(length, generator=generator, dtype=torch.float64)
    expected *= 10 ** torch.empty_like(expected).uniform_(-3, 3, generator=generator)
    return expected.to(dtype), expected


def measured(actual, expected, scale=-1.0):
    precision = precision_of(str(actual.dtype).removeprefix("torch."))
    key = precision.digits, precision.min_exponent, precision.largest
    return library().measure(actual.double(), expected, key, scale)


def assert_measured_alike(actual, expected):
    found = measured(actual, expected)
    precision = precision_of(str(actual.dtype).removeprefix("torch."))
    values = actual.double().numpy()
    wanted = measure_one(lambda start, end: values[start:end], expected.numpy(), precision)
    for name, value in Metrics.of_rows(np.array([found]))._asdict().items():
        bound = 1e-12 if name in SUMS else 0
        # The sum of signed errors is set against that of their sizes.
        near = 1e-12 * wanted.sum_abs_error[0] if name == "sum_error" else 0
        assert value[0] == pytest.approx(getattr(wanted, name)[0], rel=bound, abs=near, nan_ok=True), name


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_metrics_of_a_random_pair(dtype, length):
    assert_measured_alike(*random_pair(getattr(torch, dtype), length))


@pytest.mark.parametrize("place", [0, 5, 2047, 2050])
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_metrics_of_a_pair_with_one_odd_element(dtype, kind, place):
    actual, expected = random_pair(getattr(torch, dtype), 2051)
    odd, expected[place] = HOSTILE[kind]
    actual[place] = torch.tensor(odd, dtype=torch.float64).to(actual.dtype)
    if measured(actual, expected) is None:
        assert not bool(torch.isfinite((actual.double() - expected)[place]))
    else:
        assert_measured_alike(actual, expected)


@pytest.mark.parametrize("kind", ["nan", "inf", "zeros of both signs", "subnormal", "huge", "x over zero"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_metrics_of_a_pair_of_odd_elements_only(dtype, kind):
    actual, expected = (torch.full((37,), value, dtype=torch.float64) for value in HOSTILE[kind])
    if measured(actual.to(getattr(torch, dtype)), expected) is not None:
        assert_measured_alike(actual.to(getattr(torch, dtype)), expected)


def test_one_that_is_not_finite_on_one_side_only_is_left_to_python():
    x = torch.tensor([1.0, math.nan])
    assert measured(x, torch.ones(2, dtype=torch.float64)) is None
    assert measured(torch.ones(2), x.double()) is None


def test_float32_is_measured_as_it_is():
    actual, expected = random_pair(torch.float32, 5003)
    key = 24, -126, float(torch.finfo(torch.float32).max)
    actual[17] = expected[17] = math.nan
    assert library().measure(actual, expected, key, -1.0) == library().measure(actual.double(), expected, key, -1.0)


def test_noise_is_set_against_the_scale_that_is_given():
    actual, expected = random_pair(torch.float32, 1000)
    own = float(expected.square().mean().sqrt())
    numbers = Metrics._fields.index("noise_ratio")
    assert measured(actual, expected, own)[numbers] == pytest.approx(measured(actual, expected)[numbers], rel=1e-12)
    assert measured(actual, expected, 0.0)[numbers] > measured(actual, expected, own)[numbers]


@pytest.mark.parametrize("odd", [torch.ones(2).half(), torch.ones(4, dtype=torch.float64)[::2], torch.ones(3).double()])
def test_other_memory_is_left_to_python(odd):
    assert library().measure(odd, torch.ones(2, dtype=torch.float64), (23, -126, 3.4e38), -1.0) is None
