"""Answers to the diff table's questions."""

import json
from typing import Any

import pytest

from nbkit.trace.trace import Trace
from nbkit.views.diff_table.source import DiffSource
from tests.support.diff_frames import make_diffs, ops_of, with_step_columns
from tests.support.diff_traces import faulty_trace, hostile_diffs, large_diffs
from tests.support.fakes import make_trace


def trace_of(*rows: dict[str, Any], **meta: Any) -> Trace:
    diffs = make_diffs(*rows)
    trace = make_trace(ops_of(diffs), **meta)
    trace.frames["diffs"] = diffs
    return trace


def equal(column: str, value: str) -> dict[str, Any]:
    return {"predicates": [{"column": column, "op": "equals", "value": value}]}


def ask(source: DiffSource, kind: str, **message: Any) -> dict[str, Any]:
    return source.answer({"kind": kind, "id": "view-1", **message})


def test_rows_carry_raw_cells_the_worst_first() -> None:
    rows = ({"noise_ratio": 1.0}, {"status": "mismatch", "noise_ratio": 100.0, "module": "", "message": "worst at [0]"})
    answer = ask(DiffSource(trace_of(*rows)), "rows")
    assert (answer["id"], answer["matched"], answer["amount"], answer["largest"]) == ("view-1", 2, 1, 100)
    assert answer["columns"][:4] == ["rank", "op", "noise_ratio", "status"]
    assert answer["rows"][0][:6] == [1, 0, 1, "aten.mm.default", 100, "mismatch"]
    assert answer["rows"][1][:6] == [0, 0, 2, "aten.mm.default", 1, "ok"]
    assert answer["rows"][0][answer["columns"].index("module") + 2] == ""


def test_what_json_cannot_hold_travels_as_text() -> None:
    answer = ask(DiffSource(trace_of({"noise_ratio": float("inf")}, {"noise_ratio": 2.0})), "rows")
    assert [row[4] for row in answer["rows"]] == ["Infinity", 2]
    assert answer["largest"] == 2


def test_columns_that_are_null_throughout_are_left_out() -> None:
    columns = ask(DiffSource(trace_of({"noise_ratio": 1.0})), "rows")["columns"]
    assert {"atol", "max_ulp", "error_class", "local_error", "role"}.isdisjoint(columns)


def test_a_step_compared_as_a_whole_shows_and_filters_its_columns() -> None:
    source = DiffSource(trace_of({"status": "mismatch"}, {}, {}))
    # Put in afterwards: a trace refuses columns that its schema does not know.
    source.trace.frames["diffs"] = with_step_columns(source.trace.diffs)
    overview = source.overview()
    assert overview["choices"]["error_class"] == ["local", "propagated"]
    assert overview["labels"]["error_class"] == "error classes"
    assert [scale["name"] for scale in overview["scales"]] == ["local_error", "total_error"]
    answer = ask(source, "rows", query=equal("error_class", "propagated"))
    assert answer["columns"][6:11] == [
        "error_class",
        "local_error",
        "propagated_error",
        "total_error",
        "origin_op_id",
    ]
    assert [row[8:13] for row in answer["rows"]] == [["propagated", 1e-07, 0.25, 0.25, 0]] * 2
    assert ["origin_op_id", 0] in ask(source, "detail", row=2)["fields"]


def test_overview_says_verdicts_choices_scales_and_what_is_kept() -> None:
    kept = {"calls": 1, "size_bytes": 2048, "keep": 8, "keep_bytes": 1, "not_captured": {}}
    rows = ({"noise_ratio": 1.0}, {"status": "mismatch", "noise_ratio": 9.0}, {"status": "skipped"})
    overview = DiffSource(trace_of(*rows, reference="cpu", threshold=8.0, captured=kept)).overview()
    assert overview["figures"] == [["mismatch", "1"], ["ok", "1"], ["skipped", "1"]]
    assert overview["choices"]["status"] == ["mismatch", "ok", "skipped"]
    [scale] = overview["scales"]
    assert (scale["name"], scale["label"], scale["low"], scale["high"]) == ("noise_ratio", "noise ratio", 1.0, 9.0)
    assert (scale["threshold"], scale["above"]) == (8.0, 1)
    assert overview["notes"] == [
        "reference: cpu", "threshold: 8", "values of 1 call captured (2.00 KiB; keep=0 captures none)",
    ]  # fmt: skip


def test_a_slider_has_the_spread_of_its_values_on_a_logarithmic_axis() -> None:
    ratios = [0.0, 0.01, 1.0, 1.0, 100.0, float("inf"), None]
    rows = [{"noise_ratio": ratio, "max_abs_error": ratio} for ratio in ratios]
    noise, error = DiffSource(trace_of(*rows, threshold=8.0)).overview()["scales"]
    assert [(place, times) for place, times in enumerate(noise["bins"]) if times] == [(0, 1), (15, 2), (29, 1)]
    assert (noise["zero"], noise["infinite"], noise["missing"], noise["above"]) == (1, 1, 1, 2)
    assert (error["threshold"], error["above"]) == (None, None)


def test_a_trace_without_differences_has_an_empty_table() -> None:
    source = DiffSource(make_trace(ops_of(make_diffs({}))))
    assert (source.overview()["n_rows"], ask(source, "rows")["rows"]) == (0, [])


def test_pages_stay_small_and_text_stays_text() -> None:
    answer = ask(DiffSource(large_diffs(100_000)), "rows", offset=99_990)
    assert (answer["matched"], len(answer["rows"])) == (100_000, 10)
    hostile = ask(DiffSource(hostile_diffs()), "rows")
    assert "<img src=x onerror=alert(1)>\u202e" in hostile["rows"][0][3]
    assert max(len(json.dumps(one).encode()) for one in (answer, hostile)) < 50_000


def test_position_is_null_for_a_row_that_the_filters_hide() -> None:
    source = DiffSource(trace_of({}, {"status": "mismatch"}))
    assert ask(source, "position", row=0)["position"] == 1
    assert ask(source, "position", row=0, query=equal("status", "mismatch"))["position"] is None


def test_modules_are_counted_with_what_is_wrong_in_them() -> None:
    source = DiffSource(large_diffs(600))
    answer = ask(source, "modules")
    counts = {row[1]: row[5:7] for row in answer["rows"]}
    assert answer["amount"] == 200
    # Every third of the 600, all of which lie in blocks.
    assert counts["blocks"] == [600, 200.0]


def test_the_script_is_that_of_the_rows_op() -> None:
    answer = ask(DiffSource(faulty_trace()), "script", row=0)
    assert "OP = torch.ops.aten.addmm.default" in answer["script"]
    assert answer["note"] is None


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"kind": "price"}, "OptionError: The diff table knows no question 'price'."),
        ({"kind": "detail", "row": 7}, "OptionError: There is no row 7; the last one is 0."),
        ({"kind": "rows", "query": {"sort": [{"column": "speed"}]}}, "OptionError: The table has no column 'speed'"),
        (
            {"kind": "script", "row": 0},
            "OptionError: The values of op 0 were not captured: only nbkit.opdiff keeps values.",
        ),
        ({"kind": "detail"}, "KeyError: 'row'"),
    ],
)
def test_a_question_that_cannot_be_answered_gets_an_answer(message: dict[str, Any], text: str) -> None:
    answer = DiffSource(trace_of({})).answer(message)
    assert answer["kind"] == "error" and answer["message"].startswith(text)
