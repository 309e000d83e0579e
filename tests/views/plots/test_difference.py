"""The plots of one compared tensor: what they draw, and that JSON can carry it."""

import json
from dataclasses import replace

import numpy as np

from nbkit.trace.captured_values import CapturedResult
from nbkit.views.plots.difference import difference_plots, draw_difference, worst_difference
from tests.support.diff_traces import faulty_trace
from tests.support.fakes import small_trace

VALUES = np.array([1.0, 2.0, np.nan, np.inf])
RESULT = CapturedResult(0, "output", 0, "float32", (2, 2), (2, 2), None, VALUES, np.array([1.0, 3.0, 4.0, 5.0]))


def test_three_plots_say_what_they_show() -> None:
    histogram, scatter, heat = difference_plots(RESULT)
    assert histogram["title"] == "Errors: 4 elements, 1 exact, 2 NaN or Inf on one side"
    assert (scatter["title"], heat["title"]) == ("Actual against expected", "Errors over the tensor")
    assert heat["description"] == "Heat map of the largest errors over the tensor [2, 2]."


def test_nan_and_inf_are_no_numbers_and_no_points() -> None:
    _, scatter, heat = difference_plots(RESULT)
    assert heat["cells"] == [[0.0, 1.0], [None, None]]
    assert heat["largest"] == 1.0
    assert scatter["actual"] == [1.0, 2.0, None, None]
    assert json.loads(json.dumps(difference_plots(RESULT), allow_nan=False))


def test_a_large_tensor_is_drawn_from_few_numbers() -> None:
    values = np.random.default_rng(0).normal(size=200_000)
    large = replace(RESULT, shape=(4, 500, 100), expected_shape=(4, 500, 100), actual=values, expected=values + 1e-3)
    plots = difference_plots(large)
    assert len(json.dumps(plots)) < 100_000
    assert plots[1]["title"] == "Actual against expected, 1,996 of 200,000 elements"
    assert plots[2]["title"] == "Errors over the tensor, a cell is 32 × 2 elements"
    assert plots[2]["y_title"] == "dimensions 0 to 1"


def test_shapes_that_differ_and_empty_tensors_have_none() -> None:
    assert difference_plots(replace(RESULT, expected_shape=(4,))) == []
    assert difference_plots(replace(RESULT, actual=np.zeros(0), expected=np.zeros(0))) == []


def test_scalars_and_complex_numbers_are_drawn() -> None:
    scalar = replace(RESULT, shape=(), expected_shape=(), actual=VALUES[:1], expected=VALUES[1:2])
    assert difference_plots(scalar)[2]["cells"] == [[1.0]]
    pair = replace(
        RESULT, dtype="complex64", actual=VALUES[:2] * 1j, expected=VALUES[:2], shape=(2,), expected_shape=(2,)
    )
    assert difference_plots(pair)[1]["title"] == "Actual against expected (magnitudes)"


def test_the_static_view_is_of_the_worst_row_that_was_captured() -> None:
    (figure,) = worst_difference(faulty_trace())
    assert [len(axes.get_children()) > 5 for axes in figure.axes] == [True] * 3
    assert figure.axes[0].get_title(loc="left").startswith("Worst difference: aten.addmm")
    assert worst_difference(small_trace()) == []
    assert len(draw_difference(RESULT, "t").axes) == 3
