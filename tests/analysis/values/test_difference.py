"""How two tensors differ, element by element, in numbers counted by hand."""

import numpy as np

from nbkit.analysis.values.difference import error_histogram, errors, heat_map, scatter_places, worst_elements
from nbkit.trace.captured_values import CapturedResult

NAN, INF = np.nan, np.inf


def result(actual, expected, shape=None, dtype="float32"):
    sides = [np.array(side) for side in (actual, expected)]
    shape = sides[0].shape if shape is None else shape
    return CapturedResult(0, "output", 0, dtype, shape, shape, None, *sides)


def test_errors_count_nan_and_inf_as_the_metrics_do():
    sizes = errors(result([1.0, NAN, INF, NAN, 2.0, INF], [1.5, NAN, INF, 1.0, 2.0, -INF]))
    assert sizes.tolist()[:3] == [0.5, 0.0, 0.0]
    assert np.isnan(sizes[3]) and sizes[4] == 0 and sizes[5] == INF


def test_a_reference_beyond_the_range_of_the_dtype_is_inf():
    assert errors(result([INF, 1.0], [1e40, 1.0])).tolist() == [0.0, 0.0]


def test_integers_and_bools_have_errors_too():
    assert errors(result([3, 5], [3, 7], dtype="int64")).tolist() == [0.0, 2.0]


def test_worst_elements_have_their_index_nan_first_and_none_that_is_exact():
    table = worst_elements(result([1.0, 2.5, NAN, 4.0], [1.0, 2.0, 3.0, 5.0], (2, 2)), 3)
    assert table["index"].tolist() == ["[1, 0]", "[1, 1]", "[0, 1]"]
    assert table["abs_error"].tolist()[1:] == [1.0, 0.5]
    assert table["rel_error"].tolist()[1:] == [0.2, 0.25]


def test_a_scalar_has_an_element_without_place():
    assert worst_elements(result([2.0], [1.0], ()), 5)["index"].tolist() == ["[]"]


def test_the_histogram_counts_every_element_once():
    found = error_histogram(np.array([0.0, 1e-3, 1e-3, 1e-1, NAN, INF]), bins=2)
    assert (found.counts.tolist(), found.exact, found.unknown) == ([2, 1], 1, 2)
    assert found.edges.tolist() == [-3.0, -2.0, -1.0]


def test_an_exact_tensor_has_no_bins():
    assert len(error_histogram(np.zeros(3)).counts) == 0


def test_a_cell_of_the_heat_map_has_the_largest_error_in_it():
    matrix, spans = heat_map(np.arange(12.0), (2, 2, 3), most=2)
    assert spans == (2, 2)
    assert matrix.tolist() == [[4.0, 5.0], [10.0, 11.0]]
    assert heat_map(np.array([NAN]), ())[0].tolist() == [[INF]]


def test_of_many_elements_the_worst_are_drawn_and_some_of_all():
    sizes = np.zeros(10_000)
    sizes[4321] = 1.0
    places = scatter_places(sizes, most=100)
    assert 4321 in places and {0, 9_999} <= set(places.tolist())
    assert len(places) <= 100
    assert scatter_places(np.zeros(3)).tolist() == [0, 1, 2]
