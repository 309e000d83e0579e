"""Tests what dtypes hold against torch's own figures, and distances in their values against torch.nextafter."""

import numpy as np
import pytest
import torch

from nbkit.numerics.metrics import measure
from nbkit.numerics.precision import PRECISIONS, precision_of


@pytest.mark.parametrize("name", PRECISIONS)
def test_a_dtype_holds_what_torch_says(name):
    """The table that takes the place of default tolerances."""
    info, precision = torch.finfo(getattr(torch, name)), PRECISIONS[name]
    assert (precision.least, precision.largest) == (info.smallest_normal, info.max)
    # Not info.eps, which torch 2.13 gives wrongly for float8_e5m2fnuz: the next number after 1, by rounding to it.
    beyond = torch.tensor([1 + precision.eps, 1 + precision.eps / 8], dtype=torch.float64).to(getattr(torch, name))
    assert beyond.double().tolist() == [1 + precision.eps, 1]


@pytest.mark.parametrize("name", [name for name in PRECISIONS if name not in ("float64", "float8_e8m0fnu")])
def test_overflow_gives_inf_where_the_dtype_has_it(name):
    overflowed = torch.tensor(1e300, dtype=torch.float64).to(getattr(torch, name)).double()
    assert overflowed.isinf().item() == PRECISIONS[name].has_inf


def test_complex_dtypes_are_as_precise_as_their_parts_and_integers_are_exact():
    assert precision_of("complex64") == PRECISIONS["float32"]
    assert precision_of("int64") is None


def ulps(actual, expected, dtype):
    pair = [np.array([value], dtype=np.float64) for value in (actual, expected)]
    return measure(*pair, np.zeros(1, dtype=np.intp), PRECISIONS[dtype]).max_ulp[0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("start", [0.0, 1.0, -1.5, 2.0, 1e-40, 1e-6, 300.0])
def test_the_next_value_is_one_ulp_away(dtype, start):
    x = torch.tensor(start, dtype=getattr(torch, dtype))
    one = torch.nextafter(x, torch.tensor(float("inf"), dtype=x.dtype))
    two = torch.nextafter(one, torch.tensor(float("inf"), dtype=x.dtype))
    assert ulps(one.item(), x.item(), dtype) == 1
    assert ulps(two.item(), x.item(), dtype) == ulps(x.item(), two.item(), dtype) == 2


def test_ulps_count_across_zero_and_fractions_of_a_step():
    assert ulps(-(2.0**-149), 2.0**-149, "float32") == 2
    assert ulps(0.0, -0.0, "float32") == 0
    assert ulps(1.0, 1.00390625, "bfloat16") == 0.5
    assert np.isnan(ulps(np.nan, 1.0, "float32"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rounding_is_half_an_ulp_at_most(dtype):
    expected = torch.randn(4096, dtype=torch.float64) * torch.logspace(-44, 20, 4096, dtype=torch.float64)
    actual = expected.to(getattr(torch, dtype)).double()
    found = measure(actual.numpy(), expected.numpy(), np.zeros(1, dtype=np.intp), PRECISIONS[dtype])
    assert 0.49 < found.max_ulp[0] <= 0.5


def test_steps_between_numbers_are_those_of_the_dtype():
    half, double, e8m0 = (PRECISIONS[name] for name in ("float16", "float64", "float8_e8m0fnu"))
    assert (half.eps, half.least, half.spacing) == (2**-10, 2**-14, 2**-24)
    assert (double.eps, double.least, double.spacing) == (2**-52, 2.0**-1022, 5e-324)
    assert (e8m0.eps, e8m0.least, e8m0.spacing) == (1.0, 2.0**-127, 2.0**-127)
    assert precision_of("complex64") is PRECISIONS["float32"]
    assert precision_of("int8") is None


def test_values_are_counted_over_the_smallest_normal_number_and_over_zero():
    least, step = 2.0**-126, 2.0**-149
    assert ulps(least + step, least - step, "float32") == ulps(least - step, least + step, "float32") == 2
    assert ulps(2 * least, least / 2, "float32") == 2**23 + 2**22
    assert ulps(-1.0, 1.0, "float32") == 2 * 127 * 2**23
    assert ulps(1.0, 2.0**-126, "bfloat16") == 126 * 2**7


@pytest.mark.parametrize("change", [1e-7, 1e-3, 0.7, 30.0])
@pytest.mark.parametrize("least", [-44, -30, 0])
def test_the_largest_distance_of_a_pair_is_that_of_one_of_its_elements(least, change):
    generator = np.random.default_rng(0)
    expected = generator.standard_normal(4_000) * np.logspace(least, 20, 4_000)
    expected[::5] = 0
    actual = expected * (1 + change * generator.standard_normal(4_000))
    actual[::10] = 1e-43
    alone = measure(actual, expected, np.arange(4_000), PRECISIONS["float32"]).max_ulp
    assert measure(actual, expected, np.zeros(1, dtype=np.intp), PRECISIONS["float32"]).max_ulp == alone.max()
