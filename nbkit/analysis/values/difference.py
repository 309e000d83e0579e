"""Says where and how two tensors differ, element by element, for the detail of one compared tensor."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from nbkit.numerics.metrics import agreed
from nbkit.numerics.precision import Array, precision_of
from nbkit.trace.captured_values import CapturedResult

BINS = 40


@dataclass(frozen=True)
class Histogram:
    """Counts elements by error; `edges` are decimal logarithms of |actual - expected|."""

    edges: Array
    counts: Array
    exact: int  # elements without any error
    unknown: int  # elements of which one side alone is NaN or Inf


def errors(result: CapturedResult) -> Array:
    """Returns |actual - expected| per element, flat: 0 where both are NaN or the same Inf, NaN where one alone is."""
    actual, expected = result.actual, result.expected
    precision = precision_of(result.dtype)
    if precision is not None:
        actual, expected = agreed(actual, expected, precision)
        with np.errstate(all="ignore"):
            return np.asarray(np.abs(actual - expected), np.float64)
    return np.abs(actual.astype(np.float64) - expected.astype(np.float64))


def order_by_error(sizes: Array) -> Array:
    """Returns places of the elements, the worst first: NaN before Inf before numbers; ties in their order."""
    return np.argsort(np.where(np.isnan(sizes), -np.inf, -sizes), kind="stable")


def worst_elements(result: CapturedResult, count: int) -> pd.DataFrame:
    """Returns the elements of the largest errors, worst first, errors of 0 left out.

    Columns: place (in the flat tensor), index (a tuple as text), actual, expected, abs_error, rel_error.
    """
    sizes = errors(result)
    elements = order_by_error(sizes)[:count]
    elements = elements[sizes[elements] != 0]
    actual, expected = result.actual[elements], result.expected[elements]
    with np.errstate(all="ignore"):
        relative = sizes[elements] / np.abs(expected.astype(complex))
    indices = zip(*np.unravel_index(elements, result.shape), strict=True) if result.shape else [()] * len(elements)
    texts = [str([int(axis_index) for axis_index in index]) for index in indices]
    columns = {"place": elements, "index": texts, "actual": actual, "expected": expected}
    return pd.DataFrame({**columns, "abs_error": sizes[elements], "rel_error": relative})


def error_histogram(sizes: Array, bins: int = BINS) -> Histogram:
    """Returns the spread of errors (`errors`) over their orders of magnitude."""
    known = sizes[np.isfinite(sizes) & (sizes > 0)]
    exact, unknown = int((sizes == 0).sum()), int((~np.isfinite(sizes)).sum())
    if not len(known):
        return Histogram(np.zeros(0), np.zeros(0, np.int64), exact, unknown)
    counts, edges = np.histogram(np.log10(known), bins)
    return Histogram(edges, counts, exact, unknown)


def heat_map(sizes: Array, shape: tuple[int, ...], most: int = 64) -> tuple[Array, tuple[int, int]]:
    """Returns the errors as a matrix of at most `most` rows and columns, and how many elements a cell spans each way.

    Rows are all dimensions but the last, columns the last; a cell has the largest error in it, Inf for NaN.
    """
    columns = shape[-1] if shape else 1
    matrix = np.where(np.isnan(sizes), np.inf, sizes).reshape(-1, columns)
    spans = tuple(max(-(-length // most), 1) for length in matrix.shape)
    for axis, span in enumerate(spans):
        if matrix.size:
            matrix = np.maximum.reduceat(matrix, np.arange(0, matrix.shape[axis], span), axis=axis)
    return matrix, (spans[0], spans[1])


def scatter_places(sizes: Array, most: int = 2000) -> Array:
    """Returns elements to draw: all, or the worst quarter of `most` and others evenly from all, in their order."""
    if len(sizes) <= most:
        return np.arange(len(sizes))
    worst = order_by_error(sizes)[: most // 4]
    evenly = np.linspace(0, len(sizes) - 1, most - len(worst)).astype(np.int64)
    return np.union1d(worst, evenly)
