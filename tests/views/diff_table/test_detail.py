"""The detail pane of a compared tensor."""

from dataclasses import replace
from typing import Any

import numpy as np

from nbkit.trace.captured_values import CapturedCall, CapturedResult
from nbkit.trace.trace import Trace
from nbkit.views.diff_table.detail import diff_detail
from tests.support.diff_frames import make_diffs, ops_of
from tests.support.fakes import make_trace

RESULT = CapturedResult(0, "output", 0, "float32", (2,), (2,), 1.0, np.array([1.0, 3.0]), np.array([1.0, 2.0]))


def detail_of(row: dict[str, Any], *results: CapturedResult) -> dict[str, Any]:
    diffs = make_diffs({"status": "mismatch", **row})
    frames = {**make_trace(ops_of(diffs)).frames, "diffs": diffs}
    calls = {0: CapturedCall(0, "aten.mm.default", "cpu", [], {}, (), results)} if results else {}
    return diff_detail(Trace(frames, {}, calls), 0)


def test_fields_are_those_that_say_something() -> None:
    fields = dict(detail_of({"max_abs_error": 0.25, "actual_nan_count": 0, "expected_inf_count": 3})["fields"])
    assert fields["max_abs_error"] == 0.25
    assert fields["expected_inf_count"] == 3
    assert fields["source"] == "step.py:0"
    assert "actual_nan_count" not in fields


def test_kept_values_give_plots_and_the_worst_elements() -> None:
    detail = detail_of({}, RESULT)
    assert detail["why_not"] is None
    assert [plot["title"].split(":")[0].split(",")[0] for plot in detail["plots"]] == [
        "Errors", "Actual against expected", "Errors over the tensor",
    ]  # fmt: skip
    assert detail["worst"]["rows"] == [["[1]", "3", "2", "1", "0.5"]]


def test_an_exact_tensor_says_so() -> None:
    assert detail_of({}, replace(RESULT, actual=RESULT.expected))["worst"]["caption"] == "Every element is exact."


def test_shapes_that_differ_have_no_plots() -> None:
    other = replace(RESULT, expected_shape=(3,), expected=np.zeros(3))
    detail = detail_of({"status": "shape"}, other)
    assert (detail["plots"], detail["worst"], detail["why_not"]) == ([], None, None)


def test_values_that_were_not_kept_say_why() -> None:
    assert detail_of({})["why_not"] == "The values of this tensor were not captured: only nbkit.opdiff keeps values."
    others = detail_of({"position": 1}, RESULT)["why_not"]
    assert others == "The values of this tensor were not captured: others of its op mismatched, and it did not."
