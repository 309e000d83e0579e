"""The alignment table's answers, in a notebook and in a report."""

import json
from pathlib import Path
from typing import Any

import pytest
from traitlets import TraitError

from nbkit.trace.trace import Trace
from nbkit.views.alignment.source import AlignmentSource
from nbkit.views.alignment.widget import AlignmentTableModel
from nbkit.views.alignment_view import alignment_data
from tests.views.alignment.large import large_trace
from tests.views.alignment.makers import aligned_trace
from tests.views.report.both_sides import as_sent, in_the_page
from tests.views.report.questions import comparable, questions


def cells(answer: dict[str, Any], name: str) -> list[Any]:
    return [row[2 + answer["columns"].index(name)] for row in answer["rows"]]


def test_what_the_table_shows_are_rows_of_the_frame() -> None:
    trace = aligned_trace()
    shown = AlignmentTableModel(trace).filtered
    assert len(shown) == 35 and shown.equals(trace.alignment.loc[shown.index])


def test_a_row_that_is_not_there_cannot_be_selected() -> None:
    shown = AlignmentTableModel(aligned_trace())
    shown.selected_row = last = len(aligned_trace().alignment) - 1
    with pytest.raises(TraitError, match=f"There is no row {last + 1}; the rows of this trace are 0 to {last}."):
        shown.selected_row = last + 1
    assert shown.selected_row == last


def test_rows_come_in_order_with_both_sides_and_a_verdict() -> None:
    answer = AlignmentSource(aligned_trace()).answer({"kind": "rows", "offset": 17, "limit": 4})
    assert cells(answer, "row") == [17, 18, 19, 20]
    assert cells(answer, "mark") == ["=", "-", "=", "~"]
    assert cells(answer, "status") == ["agrees", "left only", "agrees", "diverges first"]
    assert cells(answer, "right_name")[1:] == [None, "/MatMul_3_output_0", "/Softmax_output_0"]
    assert (answer["amount"], answer["matched"]) == (12, 35)


def test_verdicts_say_whose_fault_it_is() -> None:
    answer = AlignmentSource(aligned_trace()).answer({"kind": "rows", "offset": 29, "limit": 6})
    assert cells(answer, "status") == ["inherited", "diverges here", "not known", *["right only"] * 3]


def test_a_difference_of_no_known_class_is_none_that_is_not_known() -> None:
    trace = aligned_trace(first_divergence=None)
    rows = trace.alignment.assign(error_class=trace.alignment["error_class"].where(trace.alignment.index < 20))
    answer = AlignmentSource(Trace({**trace.frames, "alignment": rows}, trace.meta)).answer({"kind": "rows"})
    assert cells(answer, "status")[28:32] == ["differs", "differs", "differs", "not known"]


def test_a_first_divergence_may_be_on_one_side_only() -> None:
    first = {**aligned_trace().meta["first_divergence"], "row": 18}
    answer = AlignmentSource(aligned_trace(first_divergence=first)).answer({"kind": "rows"})
    assert cells(answer, "status")[18:21] == ["diverges first", "agrees", "diverges here"]


def test_the_overview_counts_and_leads_to_the_first_divergence() -> None:
    overview = AlignmentSource(aligned_trace()).overview()
    assert overview["title"] == "decoder against decoder.onnx"
    assert overview["figures"] == [["agree", "18"], ["differ", "12"], ["left only", "1"], ["right only", "4"]]
    assert overview["first"]["row"] == 20
    assert overview["first"]["title"] == "Row 20: softmax ↔ /Softmax_output_0"
    assert AlignmentSource(aligned_trace(diverge=False)).overview()["first"] is None


def test_the_menu_of_verdicts_lists_the_worst_first() -> None:
    assert AlignmentSource(aligned_trace()).overview()["choices"]["status"] == [
        "diverges first", "diverges here", "inherited", "not known", "left only", "right only", "agrees",
    ]  # fmt: skip


def test_columns_of_the_right_side_that_repeat_the_left_one_are_left_out() -> None:
    columns = AlignmentSource(aligned_trace()).shown_columns
    assert columns[:8] == ["row", "mark", "status", "output_error", "op", "right_op", "dtype", "shape"]  # in sight
    assert columns[8:11] == ["name", "right_name", "local_error"]
    assert not {"right_dtype", "right_shape", "right_module", "action"} & {*columns}


def test_the_detail_has_the_facts_of_both_sides() -> None:
    detail = AlignmentSource(aligned_trace()).answer({"kind": "detail", "row": 20})
    assert detail["op"] == "softmax ↔ /Softmax_output_0"
    assert detail["why_not"].startswith("This is the first result that differs though what it reads agrees. The rows")
    facts = {name: both for name, *both in detail["worst"]["rows"]}
    assert facts["op"] == ["aten._softmax.default", "Softmax"]
    assert facts["reads"] == ["mul_scale, scores", f"{'/model/layers.0/self_attn/'}{facts['reads'][1][26:]}"]
    one_sided = AlignmentSource(aligned_trace()).answer({"kind": "detail", "row": 18})
    assert one_sided["op"] == "mul_scale ↔ —"
    assert all(right is None for _, _, right in one_sided["worst"]["rows"])


def test_the_module_tree_counts_what_differs() -> None:
    answer = AlignmentSource(aligned_trace()).answer({"kind": "modules"})
    counts = {row[1]: row[6] for row in answer["rows"]}
    assert (counts[""], counts["model.layers.0.self_attn"], counts["model.embed_tokens"]) == (12, 5, 0)


def test_a_hundred_thousand_rows_are_paged() -> None:
    source = AlignmentSource(large_trace(100_000))
    query = {"sort": [{"column": "local_error", "descending": True}]}
    answer = source.answer({"kind": "rows", "query": query, "limit": 120})
    assert (answer["matched"], cells(answer, "row")[0]) == (100_000, 50_007)
    assert len(json.dumps(answer).encode()) < 50_000


def as_text(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer whose errors, which each side words, say only that there is one."""
    return {**answer, "message": ""} if answer["kind"] == "error" else comparable(answer)


@pytest.mark.parametrize("trace", [aligned_trace(), aligned_trace(graphs=True), aligned_trace(diverge=False)])
def test_a_report_answers_what_the_notebook_does(trace: Trace, tmp_path: Path) -> None:
    source = AlignmentSource(trace)
    asked = [one for one in questions(source) if "each" not in one.get("query", {}).get("group", {})]
    answers = in_the_page("alignment", alignment_data(trace), asked, tmp_path)
    for question, answer in zip(asked, answers, strict=True):
        assert as_text(answer) == as_text(as_sent(source.answer(question))), question
