"""Bits that differ are counted and measured; NaN is like NaN, and zeros have a sign."""

import numpy as np
import pytest
import torch

from nbkit.capture.operators.stable.again import apart
from nbkit.capture.operators.stable.bits import Kept

NAN = float("nan")
OTHER_NAN = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(3, 4).t(),
        torch.tensor([NAN, 1.0]),
        torch.randn(3, dtype=torch.complex64).conj(),
        torch.randn(3, dtype=torch.complex64).conj().imag,
        torch._neg_view(torch.tensor([1.0, -2.0])),
        torch.tensor([True, False]),
        torch.tensor([], dtype=torch.float16),
        torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn),
    ],
)
def test_the_same_bits_are_at_no_distance(tensor):
    assert Kept(tensor).distance(tensor.clone(memory_format=torch.contiguous_format)) is None


def test_values_of_a_tensor_with_a_negative_bit_are_compared():
    negative = Kept(torch._neg_view(torch.tensor([1.0, 2.0])))
    assert negative.distance(torch.tensor([-1.0, -2.0])) is None
    assert negative.distance(torch.tensor([1.0, 2.0])) is not None


def test_another_nan_is_a_nan():
    assert Kept(torch.tensor([NAN])).distance(OTHER_NAN) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_distance_is_counted_in_values_of_the_dtype(dtype):
    numbers = np.array([1.0, -3.5, 100.0], dtype)
    expected = torch.from_numpy(numbers)
    up = torch.from_numpy(np.nextafter(np.nextafter(numbers, np.inf, dtype=dtype), np.inf, dtype=dtype))
    up[0] = 1.0
    distance = Kept(expected).distance(up)
    assert distance[:2] == (2.0, 2)
    assert distance.fraction == 2 * float(np.spacing(numbers[2])) / 100.0


def test_signs_of_zeros_nan_and_shapes_differ():
    zero = torch.tensor([0.0])
    assert Kept(zero).distance(-zero)[:2] == (0.0, 1)
    origin = torch.complex(zero, zero)
    for other in (torch.complex(-zero, zero), torch.complex(zero, -zero)):
        assert Kept(origin).distance(other)[:2] == (0.0, 1)
    assert Kept(zero).distance(torch.tensor([NAN]))[:2] == (float("inf"), 1)
    assert Kept(zero).distance(torch.zeros(2))[:2] == (float("inf"), 2)
    assert Kept(torch.tensor([3, 5])).distance(torch.tensor([3, 9]))[:2] == (4.0, 1)


def test_results_of_another_number_are_as_far_apart_as_can_be():
    results = [torch.ones(2), torch.ones(3)]
    expected = [Kept(one) for one in results]
    assert apart(results, expected) is None
    assert apart(results[:1], expected)[:2] == (float("inf"), 2)
