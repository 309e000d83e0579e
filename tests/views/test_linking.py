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


def select_range(flame: FlameGraph, *ids: int) -> None:
    ids_in_range = np.array(ids, np.int32).tobytes()
    flame.selected_range = {"label": "range 1 µs to 2 µs", "from_us": 1.0, "to_us": 2.0, "ids": ids_in_range}


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


def test_a_range_leaves_its_ops_in_the_table_alone_and_cleared_all(pair) -> None:
    flame, table = pair
    link(flame, table)
    select_range(flame, 1, 3, 99)
    # Not op 4, a kernel that op 3 launched: it ran later.
    assert shown(table) == table.filtered["op_id"].tolist() == flame.ids_in_range().tolist() == [1, 3]
    assert table.within["label"] == "range 1 µs to 2 µs (2 ops)"
    flame.selected_range = None
    assert (table.within, len(table.filtered)) == (None, 9)


def test_the_filter_of_the_table_stays_with_a_range_and_after_it(pair) -> None:
    flame, table = pair
    link(flame, table)
    query = {"predicates": [{"column": "op", "op": "contains", "value": "mm"}], "sort": []}
    table.source.answer({"kind": "rows", "query": query})
    everywhere = table.filtered["op_id"].tolist()
    assert everywhere == [2, 4, 6]
    select_range(flame, 1, 2, 3)
    assert table.filtered["op_id"].tolist() == [2]
    flame.selected_range = None
    assert table.filtered["op_id"].tolist() == everywhere


def test_of_frame_and_range_the_one_selected_last_counts(pair) -> None:
    flame, table = pair
    link(flame, table)
    select(flame, 5)
    select_range(flame, 1, 2)
    assert shown(table) == [1, 2]
    select(flame, 6)
    assert shown(table) == [6]
    flame.selection = None
    assert shown(table) == [1, 2]
    select(flame, 6)
    flame.selected_range = None
    assert shown(table) == [6]


def test_clearing_the_table_clears_frame_and_range_at_once(pair) -> None:
    flame, table = pair
    link(flame, table)
    select(flame, 1)
    select_range(flame, 2)
    seen = []
    table.observe(lambda change: seen.append(change["new"]), "within")
    table.within = None  # what the front end sets
    assert (flame.selection, flame.selected_range, seen) == (None, None, [None])
    assert len(shown(table)) == 9


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
    select_range(flame, 1)
    assert (table.selected_op_id, table.within) == (2, None)
    table.show_within("op 6", np.array([6]))
    table.show_all()
    assert flame.selection is not None and flame.selected_range is not None


def test_a_selection_made_before_counts(pair) -> None:
    flame, table = pair
    select(flame, 4)
    link(flame, table)
    assert shown(table) == [4]


def test_widgets_of_different_traces_are_refused() -> None:
    with pytest.raises(OptionError, match="The flame graph shows 9 ops and the table 8; make both from one trace"):
        link(FlameGraph(timed_trace()), OpTable(small_trace()))
