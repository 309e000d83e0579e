"""What is said of two executions side by side."""

from typing import Any

import numpy as np

from nbkit.trace.trace import Trace
from nbkit.views.statements.alignment import agreement_statements, alignment_statements
from nbkit.views.statements.statement import Link, Tone, Words, words_text
from tests.support.fakes import small_trace
from tests.views.alignment.makers import aligned_trace


def words_of(trace: Trace) -> list[Words]:
    (statement,) = agreement_statements(trace)
    return [*statement.sentences]


def said(trace: Trace) -> list[str]:
    return [words_text(words) for words in words_of(trace)]


def tone_of(trace: Trace) -> Tone:
    (statement,) = agreement_statements(trace)
    return statement.tone


def test_two_that_agree() -> None:
    trace = aligned_trace(diverge=False)
    assert said(trace) == ["The two agree: 30 of 35 results correspond and no value differs beyond rounding."]
    assert tone_of(trace) == "good"


def test_two_that_do_not() -> None:
    trace = aligned_trace()
    where, around, details, left, right = said(trace)
    assert where == (
        "First difference: model.layers.0.self_attn (aten._softmax.default): the result of softmax differs by 1.2 % "
        "though what it reads agrees to 1.1e-07."
    )
    assert around == (
        "18 results before it agree, 9 after it inherit it, 1 later result has a further difference of its own."
    )
    assert details == "Kind: another order of operations. What it reads differs by 1.1e-07."
    assert left == "Left: model.layers.0.self_attn (aten._softmax.default), result softmax, models/decoder.py:99."
    assert right == "Right: /Softmax_output_0 (Softmax)."
    assert tone_of(trace) == "bad"


def test_what_is_another_one_stands_in_the_first_sentence_and_a_place_of_both_is_named_once() -> None:
    message = "The norm has epsilon 1e-05 on the left, 0.01 on the right."
    known = aligned_trace().meta["first_divergence"]
    first = {**known, "kind": "epsilon", "kind_message": message, "right": known["left"], "error_before": 0.0}
    where, _, details, both = said(aligned_trace(first_divergence=first))
    assert where == (
        "First difference: model.layers.0.self_attn (aten._softmax.default), the norm has epsilon 1e-05 on the left, "
        "0.01 on the right; relative error 0.0121."
    )
    assert details == "Kind: epsilon." and both.startswith("Both: model.layers.0.self_attn")


def test_the_place_leads_to_its_row() -> None:
    assert words_of(aligned_trace())[0][1] == Link(
        "model.layers.0.self_attn (aten._softmax.default)", "alignment_table", 20
    )


def test_a_difference_on_one_side_only_and_without_a_kind() -> None:
    first: dict[str, Any] = {**aligned_trace().meta["first_divergence"], "kind": None, "left": None}
    where, around, before, right = said(aligned_trace(first_divergence=first))
    assert before == "What it reads differs by 1.1e-07."
    assert where.startswith("First difference: /Softmax_output_0 (Softmax): ")
    assert around.startswith("18 results before it agree")
    assert right.startswith("Right: ")
    first = dict.fromkeys(("left", "right"), None) | {"row": 20, "message": "it is missing."}
    where, _ = said(aligned_trace(first_divergence=first))
    assert where == "First difference: a result that it does not have: it is missing."


def test_differences_whose_beginning_is_not_known() -> None:
    trace = aligned_trace(first_divergence=None)
    assert said(trace) == [
        "11 differ and 1 cannot be compared (no values or NaN); where a difference begins was not found. 30 of 35 "
        "results correspond, and 18 agree."
    ]
    rows = trace.frames["alignment"]
    trace.frames["alignment"] = rows.assign(output_error=rows["output_error"].where(rows["mark"] != "~"))
    assert said(trace) == [
        "12 cannot be compared (no values or NaN); no difference found. 30 of 35 results correspond, and 18 agree."
    ]
    assert tone_of(trace) == ""


def test_what_has_no_values_is_not_said_to_differ() -> None:
    trace = aligned_trace(first_divergence=None)
    rows = trace.alignment
    rows.loc[rows["mark"] == "~", "output_error"] = np.nan
    assert said(trace) == [
        "12 cannot be compared (no values or NaN); no difference found. 30 of 35 results correspond, and 18 agree."
    ]


def test_a_side_that_ended_early_and_nothing_in_common() -> None:
    trace = aligned_trace(left={"name": "a", "error": "ValueError: no such op"}, first_divergence=None)
    trace.frames["alignment"] = trace.alignment[trace.alignment["mark"] == "+"].reset_index(drop=True)
    unknown, nothing, early = said(trace)
    assert unknown == "It is not known whether the two agree, because the left side ended early."
    assert nothing == "No result of an op corresponds to one of the other side."
    assert early.endswith("compared: ValueError: no such op.")


def test_what_only_one_side_has() -> None:
    alone = alignment_statements(aligned_trace())[1]
    assert [words_text(words) for words in alone.sentences] == [
        "1 result on the left only: 1 is a step to what the right side has.",
        "4 results on the right only.",
    ]


def test_nothing_of_other_traces() -> None:
    assert agreement_statements(small_trace()) == []
