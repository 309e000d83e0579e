"""Tests how far two tensors are apart by their statistics, by hand."""

from math import inf, nan

import pytest

from nbkit.divergence.distances import distances
from tests.support.fakes import make_tensors

BASE = {"norm": 4.0, "mean": 1.0, "std": 0.0, "min": 1.0, "max": 1.0, "nan_count": 0, "inf_count": 0}


def tensor(**changes):
    frame = make_tensors((0, "output", 0))
    for name, value in {**BASE, **changes}.items():
        frame[name] = frame[name].astype(frame[name].dtype).mask([True], value)
    return frame


def apart(left, right):
    found = distances(tensor(**left), tensor(**right))
    return found.error[0], found.what[0]


@pytest.mark.parametrize(
    ("left", "right", "error", "what"),
    [
        ({}, {}, 0.0, ""),
        ({"norm": 5.0}, {}, 0.2, "norm 5, there 4"),
        ({"mean": 0.5}, {}, 0.5, "mean 0.5, there 1"),
        ({"std": 0.25}, {}, 0.25, "std 0.25, there 0"),
        ({"max": 4.0}, {"max": 3.0}, 0.25, "max 4, there 3"),
        ({"min": -2.0}, {"min": -1.0}, 0.5, "min -2, there -1"),
        ({"nan_count": 1}, {}, inf, "nan_count 1, there 0"),
        ({"numel": 15}, {}, inf, "numel 15, there 16"),
        ({"norm": nan}, {"norm": nan}, 0.0, ""),
        ({"norm": nan}, {}, inf, "norm nan, there 4"),
        ({"norm": 0.0}, {"norm": 0.0, "mean": 0.0}, inf, "mean 1, there 0"),
    ],
)
def test_the_largest_relative_difference_counts(left, right, error, what):
    assert apart(left, right) == (pytest.approx(error), what)


def test_no_tensors_have_no_distances():
    empty = make_tensors()
    found = distances(empty, empty)
    assert (found.error.tolist(), found.what) == ([], [])
