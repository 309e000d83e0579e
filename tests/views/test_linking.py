"""Flame graph and op table, linked in Python."""

import numpy as np
import pytest

from nbkit.errors import OptionError
from nbkit.views.flamegraph.widget import FlameGraph
from nbkit.views.linking import link
from nbkit.views.op_table.widget import OpTable
from tests.support.fakes import small_trace, timed_trace


@pytest.fixture
def pair() -> tuple[FlameGraph, OpTable]:
    trace = timed_trace()
    return FlameGraph(trace), OpTable(trace)


def shown(table: OpTable) -> list[str]:
    return [row[2] for row in table.source.answer({"kind": "rows"})["rows"]]


def select(flame: FlameGraph, *ids: int, label: str = "frame") -> None:
    flame.selection = {"label": label, "ids": np.array(ids, np.int32).tobytes()}


def test_a_selected_frame_leaves_its_ops_in_the_table(pair) -> None:
    flame, table = pair
    link(flame, table)
    select(flame, 1, 2, label="Linear\u202e")
    assert shown(table) == [1, 2]
    assert table.within["label"] == "Linear\\u202e (2 ops)"
    flame.selection = None
    assert table.within is None
    assert len(shown(table)) == 9


def test_kernels_come_with_the_ops_that_launched_them(pair) -> None:
    flame, table = pair
    link(flame, table)
    select(flame, 1, 2, 3)
    assert shown(table) == [1, 2, 3, 4]


def test_clearing_the_table_clears_the_selection(pair) -> None:
    flame, table = pair
    link(flame, table)
    select(flame, 1)
    table.within = None  # what the front end sets
    assert flame.selection is None
    assert len(shown(table)) == 9


def test_each_set_of_ops_is_told_apart_though_its_label_is_the_same(pair) -> None:
    flame, table = pair
    link(flame, table)
    seen = []
    table.observe(lambda change: seen.append(shown(table)), "within")
    select(flame, 2)
    select(flame, 6)
    assert seen == [[2], [6]]


def test_an_op_selected_in_one_is_selected_in_the_other(pair) -> None:
    flame, table = pair
    unlink = link(flame, table)
    table.selected_op_id = 5
    assert flame.selected_op_id == 5
    flame.selected_op_id = 2
    assert table.selected_op_id == 2
    unlink()
    flame.selected_op_id = 3
    select(flame, 1)
    assert (table.selected_op_id, table.within) == (2, None)


def test_a_selection_made_before_counts(pair) -> None:
    flame, table = pair
    select(flame, 4)
    link(flame, table)
    assert shown(table) == [4]


def test_widgets_of_different_traces_are_refused() -> None:
    with pytest.raises(OptionError, match="The flame graph shows 9 ops and the table 8; make both from one trace"):
        link(FlameGraph(timed_trace()), OpTable(small_trace()))
