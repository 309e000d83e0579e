"""What is said of two executions side by side."""

from typing import Any

from nbkit.trace.trace import Trace
from nbkit.views.statements.alignment import alignment_statements, alignment_tone, alignment_words
from nbkit.views.statements.statement import Link, words_text
from tests.support.fakes import small_trace
from tests.views.alignment.makers import aligned_trace


def said(trace: Trace) -> list[str]:
    return [words_text(words) for words in alignment_words(trace)]


def test_two_that_agree() -> None:
    trace = aligned_trace(diverge=False)
    assert said(trace) == ["The two agree: 30 of 35 results correspond and no value differs beyond rounding."]
    assert alignment_tone(trace) == "good"


def test_two_that_do_not() -> None:
    trace = aligned_trace()
    where, around, errors, left, right = said(trace)
    assert where.endswith("the result of softmax differs by 1.2 % though what it reads agrees to 1.1e-07.")
    assert around == (
        "Kind: another order of operations; 18 results before it agree, 9 after it inherit the difference, 1 after it "
        "differs by more than that."
    )
    assert errors == "The relative error is 0.0121 there, where what it reads differs by 1.1e-07."
    assert left == "Left: model.layers.0.self_attn (aten._softmax.default), result softmax, models/decoder.py:99."
    assert right == "Right: /Softmax_output_0 (Softmax)."
    assert alignment_tone(trace) == "bad"


def test_the_place_leads_to_its_row() -> None:
    assert alignment_words(aligned_trace())[0][1] == Link(
        "model.layers.0.self_attn (aten._softmax.default)", "alignment_table", 20
    )


def test_a_difference_on_one_side_only_and_without_a_kind() -> None:
    first: dict[str, Any] = {**aligned_trace().meta["first_divergence"], "kind": None, "left": None, "error": None}
    where, around, right = said(aligned_trace(first_divergence=first))
    assert where.startswith("They first diverge at /Softmax_output_0 (Softmax): ")
    assert around.startswith("18 results before it agree")
    assert right.startswith("Right: ")
    first = dict.fromkeys(("left", "right"), None) | {"row": 20, "message": "it is missing."}
    where, _ = said(aligned_trace(first_divergence=first))
    assert where == "They first diverge at a result that it does not have: it is missing."


def test_differences_whose_beginning_is_not_known() -> None:
    trace = aligned_trace(first_divergence=None)
    assert said(trace) == [
        "30 of 35 results correspond: 18 agree, 11 differ and 1 cannot be compared (no values or NaN); where a "
        "difference begins could not be found."
    ]
    rows = trace.frames["alignment"]
    trace.frames["alignment"] = rows.assign(output_error=rows["output_error"].where(rows["mark"] != "~"))
    assert said(trace) == [
        "30 of 35 results correspond: 18 agree, 12 cannot be compared (no values or NaN); no difference found."
    ]
    assert alignment_tone(trace) == ""


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
    assert (alignment_words(small_trace()), alignment_tone(small_trace())) == ([], "")
