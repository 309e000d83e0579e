"""What follows from a cause stands in one line below it, in each form of a brief."""

import json

from nbkit.findings.finding import Finding
from tests.views.brief.test_brief import with_findings

DIV = {"op": "aten.div.Tensor", "source": "train.py:7", "source_text": "x / y"}


def nan_of_a_script():
    kept = [Finding("input", "error", f"w{n} was NaN", "Look.", parameter=f"w{n}", step=299) for n in range(6)]
    return with_findings(
        Finding("loss_not_finite", "error", "The loss is NaN from step 211 on", "Look.", step=211),
        Finding("hidden_diagonal", "warning", "the mask hides it", "Mend.", op_id=3, **DIV, module="a"),
        Finding("hidden_diagonal", "warning", "the mask hides it", "Mend.", op_id=5, **DIV, module="b"),
        Finding("skipped_step", "warning", "GradScaler skips all", "Mend.", step=211),
        Finding("nan", "error", "its only element is NaN", "Guard.", step=211, phase="forward", **DIV),
        Finding("inf", "error", "Inf", "Guard.", step=211, phase="backward", **DIV),
        *kept,
        Finding("zero_gradient", "hint", "so", "Mend."),
    )


FOLLOWS = (
    "9 further findings follow from it: the loss is NaN from step 211 on; GradScaler skips all; Inf in aten.div.Tensor "
    "(backward); 6 parameters were already NaN or Inf before step 299 (w0, w1, w2, w3 and 2 others)."
)


def test_causes_are_counted_and_told_first_with_what_follows():
    parts = nan_of_a_script().brief().split("\n\n")
    assert parts[0].startswith("2 causes (1 error, 1 warning), 9 consequences, 1 hint.")
    assert parts[1] == (
        "1. error, nan: aten.div.Tensor: its only element is NaN.\n"
        f"   in step 211, train.py:7: `x / y`\n   {FOLLOWS}\n   Guard."
    )
    assert parts[2].split("\n")[2] == "   The same in 1 other module: b."
    assert parts[3].startswith("3. hint, zero_gradient")


def test_every_form_has_the_line():
    trace = nan_of_a_script()
    data = json.loads(trace.brief(form="json"))
    assert [(one["rule"], one.get("consequences")) for one in data["findings"]] == [
        ("nan", 9),
        ("hidden_diagonal", 0),
        ("zero_gradient", None),
    ]
    assert data["findings"][0]["follows"] == FOLLOWS
    assert "9 further findings follow from it: the loss" in trace.brief(form="markdown")
    assert "9 further findings follow from it: the loss" in trace.summary()


def test_a_hint_from_which_a_warning_follows_is_a_warning():
    found = (
        Finding("skipped_step", "warning", "GradScaler skips", "Mend."),
        Finding("inf", "hint", "Inf", "Wait.", phase="backward", **DIV),
    )
    text = with_findings(*found).brief()
    assert "1 warning, 1 consequence." in text and "1. warning, inf: aten.div.Tensor: Inf." in text


def test_one_severity_needs_no_word_of_causes():
    found = Finding("nan", "error", "NaN", "Guard.", phase="forward", **DIV)
    later = Finding("non_finite_gradient", "error", "The optimizer uses NaN", "Find it.")
    assert with_findings(found, later).brief().startswith("1 error, 1 consequence.")
    assert "1 further error follows from it: the optimizer uses NaN." in with_findings(found, later).brief()
