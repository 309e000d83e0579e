"""The diff table's Python side, and what links it to the op table."""

import pytest
from traitlets import TraitError

from nbkit.errors import OptionError
from nbkit.views.diff_table.widget import DiffTable
from nbkit.views.linking import link_differences
from nbkit.views.live.widget import STATIC
from nbkit.views.op_table.widget import OpTable
from tests.support.diff_traces import faulty_trace, large_diffs
from tests.support.fakes import small_trace


def test_state_stays_small_and_holds_no_rows() -> None:
    state = DiffTable(large_diffs(30_000)).get_state()
    code = {name: state.pop(name) for name in ("_esm", "_css")}
    assert sum(len(str(text)) for text in code.values()) < 96_000
    assert len(str(state)) < 4_000


def test_selection_must_be_a_row() -> None:
    table = DiffTable(large_diffs(3))
    table.selected_row = 2
    with pytest.raises(TraitError, match="There is no row 3; the rows of this trace are 0 to 2"):
        table.selected_row = 3


@pytest.mark.parametrize("name", ["diff_table.js", "diff_table.css"])
def test_bundle_loads_nothing(name: str) -> None:
    # The namespace of SVG is a name that looks like an address; nothing is loaded from it.
    text = (STATIC / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert len(text) > 2_000
    assert not any(mark in text for mark in ("://", "innerHTML", "insertAdjacentHTML", "eval(", "@import"))


def test_alone_it_shows_the_widget_with_its_text_and_html_twins() -> None:
    data, _ = DiffTable(faulty_trace())._repr_mimebundle_()
    assert "mismatch" in data["text/plain"]
    assert "<caption>Worst differences</caption>" in data["text/html"]


def test_a_selected_row_selects_its_op_and_an_op_its_worst_row() -> None:
    trace = large_diffs(12)
    trace.frames["diffs"] = trace.diffs.assign(op_id=trace.diffs["op_id"] // 2)
    differences, table = DiffTable(trace), OpTable(trace)
    link_differences(differences, table)
    differences.selected_row = 4
    assert table.selected_op_id == 2
    table.selected_op_id = 5
    assert differences.selected_row == 10  # a mismatch; row 11 could not be compared
    table.selected_op_id = 9
    assert differences.selected_row is None


def test_what_is_unlinked_stays_apart() -> None:
    trace = large_diffs(6)
    differences, table = DiffTable(trace), OpTable(trace)
    link_differences(differences, table)()
    differences.selected_row = 3
    assert table.selected_op_id is None
    table.selected_op_id = 5
    assert differences.selected_row == 3


def test_tables_of_two_traces_are_not_linked() -> None:
    with pytest.raises(OptionError, match="The diff table shows 6 ops and the op table 8; make both from one trace"):
        link_differences(DiffTable(large_diffs(6)), OpTable(small_trace()))


def test_filtered_is_what_is_shown_now_the_worst_first() -> None:
    table = DiffTable(large_diffs(12))
    assert table.filtered["noise_ratio"].iloc[0] == table.filtered["noise_ratio"].max()
    query = {"predicates": [{"column": "status", "op": "equals", "value": "ok"}], "sort": [{"column": "op_id"}]}
    table.source.answer({"kind": "rows", "query": query})
    shown = table.filtered
    assert shown.equals(table.source.trace.diffs[table.source.trace.diffs["status"] == "ok"])
