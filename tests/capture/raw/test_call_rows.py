"""Finds the rows of calls that begin before their rows are written."""

from types import SimpleNamespace

import numpy as np

from nbkit.capture.raw.call_rows import CallRows
from nbkit.capture.raw.flat_list import FlatList


def test_a_call_has_the_row_of_its_op_that_follows_those_of_calls_inside():
    ops = FlatList(("name",), ("start",))
    rows = CallRows(SimpleNamespace(ops=ops))

    def write(*names):
        for name in names:
            ops.add((name, 0))

    mul, view, gru = object(), object(), object()
    write("a call of the API")
    rows.begin(view)
    write(view)
    rows.begin(mul)
    rows.begin(view)  # of the inside of mul
    write(view)
    rows.begin(view)
    write(view, mul)
    rows.begin(mul)  # a part of gru, without a row
    write("a call of the API", gru)
    rows.begin(mul)
    write(mul)
    rows.begin(None)
    write(gru)
    rows.begin(gru)  # interrupted
    assert rows.op_ids(np.arange(9) * 10).tolist() == [10, 40, 20, 30, 50, 70, 80, -1]
