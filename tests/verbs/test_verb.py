"""What is said of a cell's trace that holds nothing to show."""

from typing import Any

import pytest

from nbkit.schema import DIFFS, STABILITY
from nbkit.verbs.registry import VERBS
from nbkit.verbs.verb import own_failure, why_empty
from tests.support.fakes import make_ops, make_trace

ERROR = {"type": "ValueError", "message": "no"}
OURS = {**ERROR, "failed_in_nbkit": "nbkit/a.py:3"}
NOTHING_RAN = "No op ran in the thread of this cell, so the trace is empty."
ENDED = "No op ran before the cell ended with ValueError, so the trace is empty and incomplete."


def said(verb: str, ops: int, **meta: Any) -> str | None:
    trace = make_trace(make_ops(*[{}] * ops), **meta)
    trace.frames |= {"diffs": DIFFS.frame(), "stability": STABILITY.frame()}
    recorder = VERBS[verb].recorder
    assert recorder is not None
    return recorder.nothing(trace)


@pytest.mark.parametrize("verb", ["optrace", "opcheck", "opdiff"])
def test_why_no_op_was_recorded(verb: str) -> None:
    assert said(verb, 0) == NOTHING_RAN
    assert said(verb, 0, error=ERROR) == ENDED
    skipped = "No op was recorded, but some were skipped: 2 x of a subclass, 1 x quantized."
    assert said(verb, 0, skipped={"of a subclass": 2, "quantized": 1}) == skipped
    assert (said(verb, 0, error=OURS) or "").startswith("nbkit itself failed")


def test_an_error_of_the_cell_is_none_of_ours() -> None:
    assert own_failure(ERROR) is None
    ours = own_failure(OURS) or ""
    assert "ValueError" in ours and "nbkit/a.py:3" in ours
    assert ", not the code of the cell; nothing was recorded." in ours
    assert why_empty(make_trace(make_ops({}))) is None


def test_filters_that_leave_nothing_are_said() -> None:
    left_out = "The filters left out all 7 recorded ops; loosen them to see some."
    assert said("optrace", 0, filtered_ops=7) == left_out
    assert said("optrace", 1, filtered_ops=7) is None


def test_a_comparison_of_nothing_is_said() -> None:
    sentence = "No op was compared: the filters, phases or the kind of the ops left none; see trace.meta['skipped']."
    assert said("opdiff", 1) == said("opdiff", 0, filtered_ops=7) == sentence


def test_a_timed_step_is_always_a_row() -> None:
    assert said("optime", 2) is None
    assert said("optime", 1) == said("optime", 0) == NOTHING_RAN
    assert said("optime", 1, error=ERROR) == ENDED
    assert said("optime", 0, error=ERROR) == (
        "The cell ended with ValueError while it warmed up, so nothing was recorded."
    )
    assert (said("optime", 0, error=OURS) or "").startswith("nbkit itself failed")


@pytest.mark.parametrize(
    ("verb", "sentence"),
    [
        ("opcast", "No op was cast: the filters, the dtypes or the kind of the ops left none"),
        ("opfallback", "No op ran on the CPU instead: the filters or the kind of the ops left none"),
        ("opstable", "No op was run again: the filters, phases or the kind of the ops left none"),
    ],
)
def test_an_operator_tool_that_chose_no_op_says_so(verb: str, sentence: str) -> None:
    assert said(verb, 1) == f"{sentence}; see trace.meta['skipped']."
    assert said(verb, 0) == NOTHING_RAN
