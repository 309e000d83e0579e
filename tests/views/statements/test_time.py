"""Tests the sentence that answers where the time of a step goes."""

import pandas as pd

from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import brief_of
from nbkit.views.statements.statement import Link, Words, words_text
from nbkit.views.statements.time import time_statements
from tests.support.fakes import make_ops, make_trace, small_trace, timed_trace


def words_of(trace: Trace) -> tuple[Words, ...]:
    (statement,) = time_statements(trace) or ()
    return statement.sentences


def test_the_answer_is_time_phases_slowest_op_and_module():
    words, *memory = words_of(timed_trace())
    assert [words_text(one) for one in memory] == [
        "Peak of memory: 2.50 KiB on cpu after 8.00 µs, in aten.mm.default; most of it, 80.0 %, by fc.",
        "train.py:7 made 2.00 KiB (80.0 %) of the peak.",
    ]
    assert words_text(words) == (
        "100 µs per step (median of 5 runs, IQR 4.00 µs): forward 24 %, backward 56 %, optimizer 12 %, other 8 %; "
        "slowest op aten.mm (40 %), slowest module fc (48 %), slowest kernel gemm (100 % of cuda:0's time)."
    )
    assert [(part.text, part.widget) for part in words if isinstance(part, Link)] == [
        ("aten.mm", "op_table"),
        ("fc", "op_table"),
    ]


def test_one_run_says_so_and_what_is_not_there_is_not_named():
    step = {"level": "range", "op": "step", "phase": "other", "total_time_us": 2000.0, "self_time_us": 2.0}
    ops = make_ops(step, {"parent_id": 0, "op": "aten.exp.default", "start_us": 1.0, "self_time_us": 1998.0})
    (words,) = words_of(make_trace(ops, verb="optime"))
    assert words_text(words) == "2.00 ms per step (one run): forward 100 %; slowest op aten.exp (100 %)."
    assert time_statements(small_trace(verb="optrace")) is None
    assert time_statements(make_trace(ops.head(1), verb="optime")) is None


def test_delays_that_no_call_s_median_explains_are_told():
    trace = timed_trace()
    trace.frames["timings"].loc[0, "median_us"] = 250.0
    assert words_text(words_of(trace)[0]).startswith(
        "250 µs per step (median of 5 runs, IQR 4.00 µs, 125 µs by the medians of its calls): forward 24 %, "
    )


def test_a_brief_answers_before_it_gives_hints():
    assert brief_of(timed_trace()).verdict[0] == words_of(timed_trace())[0]


def test_the_device_of_a_kernel_may_be_unknown():
    trace = timed_trace()
    trace.frames["ops"]["device"] = pd.Series([None] * len(trace.ops), dtype=trace.ops["device"].dtype)
    assert "nan" not in words_text(words_of(trace)[0])
