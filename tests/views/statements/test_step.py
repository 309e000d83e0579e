"""What is said of a step that opdoctor measured: its time, its peak, its FLOPs."""

import pytest

from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import words_text
from nbkit.views.statements.time import step_words
from tests.support.fakes import make_ops

MEMORY = {"peak_bytes": 3 << 20, "held_bytes": 1 << 20}
BEFORE = "Peak memory 3.00 MiB, of which 1.00 MiB that it read was there before."
SHARES = {
    "phases": {"forward": 400.0, "backward": 600.0},
    "slowest_ops": [["aten.mm.default", 250.0]],
    "slowest_modules": [["Net", "", 100.0], ["Net", "head", 50.0]],
}
ALONE = {"phases": {"other": 3.0}, "slowest_ops": [], "slowest_modules": []}


def said(step):
    return [words_text(words) for words in step_words(Trace({"ops": make_ops({})}, {"step": step}))]


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ({"runs": 0}, "At most 1.00 ms per step: recording slows it; repeats are timed by themselves."),
        ({"runs": 1, **SHARES}, "1.00 ms per step (one run): forward 40 %, backward 60 %; slowest op aten.mm (25 %), "
         "slowest module (root) (10 %)."),
        ({"runs": 4, "iqr_us": 20.0, **ALONE}, "1.00 ms per step (median of 4 runs, IQR 20.0 µs): other 100 %."),
    ],
)  # fmt: skip
def test_the_time_is_that_of_runs_by_themselves_or_a_bound(step, sentence):
    assert said({"time_us": 1000.0, **step}) == [sentence]


def test_the_peak_has_what_was_there_before():
    assert said({"time_us": 1.0, "runs": 0, **MEMORY})[1:] == [BEFORE]
    assert said({"time_us": 1.0, "runs": 0, "peak_bytes": 512, "held_bytes": None})[1:] == ["Peak memory 512 B."]
    assert said({"peak_bytes": 512, "peak_is_least": True}) == ["Peak memory at least 512 B."]
    assert said({"peak_bytes": 512, "peak_device": "cuda:1"}) == ["Peak memory of cuda:1 512 B."]
    assert said({"time_us": 1.0, "runs": 0, "peak_bytes": None})[1:] == []


def test_of_a_step_that_was_not_timed_the_rest_is_said():
    assert said({**MEMORY}) == [BEFORE]


@pytest.mark.parametrize(("uncounted", "least"), [(0, ""), (2, "at least ")])
def test_flops_that_are_not_all_are_at_least_so_many(uncounted, least):
    step = {"time_us": 1.0, "runs": 0, "flops": 2_000_000, "uncounted_calls": uncounted}
    assert said(step)[1:] == [f"Its products and convolutions compute {least}2.00 MFLOP."]


def test_a_trace_of_another_verb_says_nothing():
    assert step_words(Trace({"ops": make_ops({})}, {})) == []
