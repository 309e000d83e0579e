import pandas as pd

from nbkit.schema import TEXT
from nbkit.step.decode import arguments_of, as_shape, cells_in, inputs_in, shape_of, shapes_in, sizes_of


def test_a_size_that_is_not_known_is_null_in_a_shape_and_minus_one_among_sizes():
    assert shape_of("[2, null, 8]") == (2, None, 8)
    assert sizes_of("[2, null, 8]") == (2, -1, 8)
    assert as_shape(sizes_of("[2, null, 8]")) == (2, None, 8)
    assert shape_of("[]") == sizes_of("[]") == ()


def test_the_shapes_of_a_column_keep_its_order_and_its_nulls():
    assert shapes_in(pd.Series(["[2]", None, "[]", "[2]"], dtype=TEXT)) == [(2,), None, (), (2,)]
    assert shapes_in(pd.Series([], dtype=TEXT)) == []


def test_a_cell_without_a_value_is_none_in_a_column_of_any_dtype():
    columns = {TEXT: ["a", None], "Int64": [2, None], "float64": [0.5, None], "int64": [3], "object": []}
    found = {dtype: cells_in(pd.Series(values, dtype=dtype)) for dtype, values in columns.items()}
    assert found == columns
    assert type(found["Int64"][0]) is int


def test_arguments_that_were_not_recorded_are_none():
    assert arguments_of('{"dim": [0, 1]}') == {"dim": [0, 1]}
    assert [arguments_of(text) for text in (None, float("nan"), pd.NA, "")] == [{}, {}, {}, {}]


def test_inputs_that_were_not_recorded_are_told_from_an_op_without_any():
    assert inputs_in("[[2, 8], [], [[2], [3]]]") == [[2, 8], [], [[2], [3]]]
    assert (inputs_in("[]"), inputs_in(None), inputs_in(pd.NA)) == ([], None, None)
