"""The diff table of a report answers what that of the notebook does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nbkit.trace.trace import Trace
from nbkit.views.diff_table.panel import diff_data
from nbkit.views.diff_table.source import DiffSource
from nbkit.views.panels.rounded import rounded
from tests.support.diff_frames import make_diffs, ops_of, with_step_columns
from tests.support.diff_traces import faulty_trace, hostile_diffs, large_diffs
from tests.support.fakes import make_ops, make_trace
from tests.views.report.both_sides import as_sent, in_the_page
from tests.views.report.questions import comparable, questions
from tests.views.report.traces import NAMES

STATUSES = ("ok", "mismatch", "odd", "shape", "skipped", "failed", "dtype", "reduced")
RATIOS = (np.nan, np.inf, 0.0, 1e-9, 1.0, 7.5, 12345.678, 3e200, 10.0)
KEPT = {"keep": 2, "calls": 2, "size_bytes": 10, "not_captured": {"1": "too large for keep_bytes", "3": "it raised"}}


def odd_diffs(n_rows: int = 90, **meta: Any) -> Trace:
    """Rows of every verdict, with odd metrics, names and messages; two rows of each op."""
    rows = []
    for number in range(n_rows):
        row = {"op_id": number // 2, "op": NAMES[number % len(NAMES)], "position": number % 2}
        row |= {"status": STATUSES[number % 8], "noise_ratio": RATIOS[number % 9], "max_abs_error": RATIOS[number % 7]}
        row |= {"mean_abs_error": number / 3, "cosine_similarity": -number / 7, "rtol": 1e-5} if number % 3 else {}
        row |= {"module": NAMES[number % 5], "mismatch_count": number} if number % 4 else {"module": ""}
        row |= {"actual_nan_count": number % 2, "message": "random numbers" if number % 10 else NAMES[0]}
        rows.append(row)
    diffs = with_step_columns(make_diffs(*rows))
    trace = make_trace(ops_of(diffs), **meta)
    trace.frames["diffs"] = diffs
    return trace


def without_values(trace: Trace) -> Trace:
    return Trace(trace.frames, trace.meta)


def nothing_compared() -> Trace:
    trace = make_trace(make_ops({}))
    trace.frames["diffs"] = make_diffs()
    return trace


TRACES: dict[str, Callable[[], Trace]] = {
    "real": faulty_trace,
    "real, saved without values": lambda: without_values(faulty_trace()),
    "large": lambda: large_diffs(2000),
    "hostile": hostile_diffs,
    "odd": odd_diffs,
    "some kept": lambda: odd_diffs(captured={**KEPT, "calls": 0}),
    "odd, saved without values": lambda: odd_diffs(captured=KEPT, threshold=8.0, reference="cpu float64"),
    "empty": nothing_compared,
}


@pytest.mark.parametrize("name", TRACES)
def test_every_answer_is_that_of_the_notebook(name: str, tmp_path: Path) -> None:
    trace = TRACES[name]()
    source = DiffSource(rounded(trace))
    asked = list(questions(source))
    answers = in_the_page("diff", diff_data(trace, values=True), asked, tmp_path)
    for question, answer in zip(asked, answers, strict=True):
        assert comparable(answer) == comparable(as_sent(source.answer(question))), question


def test_values_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    source = DiffSource(rounded(faulty_trace()))
    row = int(np.flatnonzero(pd.Series(source.trace.diffs["status"]) == "mismatch")[0])
    asked = [{"kind": kind, "id": "d", "row": row} for kind in ("detail", "script")]
    detail, script = in_the_page("diff", diff_data(faulty_trace(), values=False), asked, tmp_path)
    said = "The values of this tensor are not in this report; write it with values=True to have them."
    in_notebook = comparable(as_sent(source.answer(asked[0])))
    assert comparable(detail) == {**in_notebook, "why_not": said, "plots": [], "worst": None}
    assert script["message"] == "The script needs the inputs of the op, which are not in this report."


def test_the_script_stands_in_a_report_with_values(tmp_path: Path) -> None:
    source = DiffSource(faulty_trace())
    row = int(np.flatnonzero(pd.Series(source.trace.diffs["status"]) == "mismatch")[0])
    asked = [{"kind": "script", "id": "s", "row": row}]
    assert in_the_page("diff", diff_data(faulty_trace(), values=True), asked, tmp_path) == [source.answer(asked[0])]


def test_without_values_no_element_of_a_tensor_is_in_the_block() -> None:
    assert len(diff_data(faulty_trace(), values=False)) < len(diff_data(faulty_trace(), values=True)) / 3


def test_the_same_trace_gives_the_same_bytes() -> None:
    assert diff_data(odd_diffs(), values=True) == diff_data(odd_diffs(), values=True)
