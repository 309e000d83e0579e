"""Why the values of an op were not captured, and which option would keep them."""

from typing import Any

import pytest

from nbkit.errors import OptionError
from nbkit.trace.captured_calls import captured_call, why_not_captured
from nbkit.trace.trace import Trace
from tests.support.diff_frames import make_diffs
from tests.support.fakes import make_ops, make_trace

MEANT = {"calls": 3, "keep": 8, "not_captured": {"0": "over keep_bytes", "1": "it failed"}}


def trace(*rows: dict[str, Any], captured: Any = MEANT) -> Trace:
    made = make_trace(make_ops(*[{"op": f"aten.op{number}.default"} for number in range(4)]), captured=captured)
    made.frames["diffs"] = make_diffs(*rows)
    made.captured = {9: None}  # type: ignore[dict-item]
    return made


def test_each_reason_is_told() -> None:
    made = trace()
    assert why_not_captured(made, 0) == "over keep_bytes; a larger keep_bytes makes room"
    assert why_not_captured(made, 1) == "it failed"
    right = "it is not a mismatch; record with keep_ops='aten.op2.default' to keep calls of this op all the same"
    assert why_not_captured(made, 2) == right
    assert why_not_captured(trace(captured=None), 0) == "only nbkit.opdiff keeps values"
    unsaved = trace()
    unsaved.captured = {}
    assert why_not_captured(unsaved, 0) == "the trace was saved without its values; save it with values='captured'"


def test_the_reason_of_a_compared_op_is_in_its_row() -> None:
    ok = {"op_id": 2, "op": "aten.other.default", "status": "ok"}
    assert "keep_ops='aten.other.default'" in why_not_captured(trace(ok), 2)
    wrong = {"op_id": 2, "status": "mismatch", "message": "off by 1"}
    more = "the first 8 mismatched calls are captured; record with a larger keep= for more"
    assert why_not_captured(trace(wrong), 2) == more
    drawn = {"op_id": 2, "status": "mismatch", "message": "random numbers"}
    assert why_not_captured(trace(wrong, drawn), 2) == "random ops draw other numbers when they run again"


def test_the_sentence_names_the_op() -> None:
    with pytest.raises(OptionError, match=r"^The values of op 1 were not captured: it failed\.$"):
        captured_call(trace(), 1)
