"""What is said of updates: whole sentences, advice and figures."""

import json
from typing import Any

from nbkit.findings.training.facts import Skip
from nbkit.findings.training.rules import audit_findings
from nbkit.findings.training.updates import INNER, LOST, NOT_HELD, NOTHING, OTHER_MODEL, SKIPPED
from tests.findings.training.audits import audit

OUTSIDE = {"module": "b", "in_optimizer": 0, "optimizer_steps": 0, "changed_fraction": 0.0}
BAD = {"gradient": "non_finite", "optimizer_steps": 0, "skipped_steps": 1}


def told(*rows: dict[str, Any], **facts: Any) -> list[tuple[str, str, str]]:
    table = audit_findings(audit(*rows, **facts))
    return list(zip(table["severity"], table["message"], table["advice"], strict=True))


def test_what_no_optimizer_holds_is_named_in_the_number_that_it_has():
    assert told(OUTSIDE, {}, {}) == [("warning", "b.w0 gets a gradient but is in no optimizer", NOT_HELD)]
    assert told(OUTSIDE, OUTSIDE, {}, {}) == [
        ("warning", "b (2 tensors) get gradients but are in no optimizer", NOT_HELD)
    ]
    assert told(OUTSIDE, OUTSIDE, {})[0][0] == "hint"  # held are fewer than not


def test_a_layer_on_its_own_that_no_optimizer_holds_is_a_warning():
    head = {**OUTSIDE, "model": "Linear", "module": ""}
    once = {("Linear", "", 0): True}
    assert told(head, head, {}, {}, modes=once) == [
        ("warning", "2 parameters of Linear get gradients but are in no optimizer", NOT_HELD)
    ]
    assert told(head, head, {}, modes=once)[0][0] == "hint"  # larger than what is trained
    assert told(head, head, {}, {}, modes={("Linear", "", 0): False})[0][0] == "hint"  # fixed: in eval mode
    twice = {("Linear", "", 0): True, ("Linear", "", 1): True}  # for a result and for what it is compared with
    assert told(head, head, {}, {}, modes=twice)[0][0] == "hint"
    assert told(head, head, {}, {}, modes=twice, steps=2)[0][0] == "warning"
    inside = {("Net", "b", 0): False}
    assert told(OUTSIDE, {}, modes=inside)[0][0] == "hint"


def test_an_optimizer_of_another_copy_of_the_model_is_told():
    held = {"gradient": "none", "changed_fraction": 0.0, "calls": 1}
    why = "; the optimizer steps, but none of its own parameters gets a gradient"
    assert told(OUTSIDE, held, idle_steps=1)[0] == (
        "warning",
        f"b.w0 gets a gradient but is in no optimizer{why}",
        OTHER_MODEL,
    )
    assert told(OUTSIDE, {}, steps=2, idle_steps=1)[0][2] == NOT_HELD


def test_a_model_that_another_calls_without_holding_it_is_told():
    why = "; another model calls it without holding it in an attribute"
    message = f"2 parameters of Part get gradients but are in no optimizer{why}"
    part = {**OUTSIDE, "model": "Part"}
    assert told(part, part, {}, inner=frozenset({"Part"})) == [("warning", message, INNER)]
    assert told(part, part, {}, inner=frozenset({"Net"}))[0][0] == "hint"


def test_parameters_that_moved_or_have_no_gradient_need_no_optimizer():
    assert told({**OUTSIDE, "changed_fraction": 0.5}, {}) == []
    assert told({**OUTSIDE, "gradient": "zero"}, {}) == []
    assert told({**OUTSIDE, "requires_grad": False}, {}) == []
    assert told({**OUTSIDE, "changed_fraction": None}, {}) == []


def test_what_rounding_loses_is_told_with_rate_and_share():
    half = {"dtype": "bfloat16", "changed_fraction": 0.05, "learning_rate": 1e-4}
    why = ": bfloat16 rounds w - 0.0001 * update back to w for the others"
    assert told(half, {}) == [
        ("warning", f"The optimizer changes only 5 % of the elements of a.w0 though its gradient is not 0{why}", LOST)
    ]
    assert told({**half, "changed_fraction": 0.0}, {})[0][1].startswith("The optimizer changes no element of a.w0")
    assert told({"changed_fraction": 0.0}, {"changed_fraction": 0.0}, {"learning_rate": 0.2}) == [
        ("warning", "The optimizer changes no element of a.w0, a.w1 though their gradients are not 0", NOTHING)
    ]


def test_the_share_is_of_the_elements_that_have_a_gradient():
    half = {"dtype": "float16", "changed_fraction": 0.05}
    assert told({**half, "gradient_zero_fraction": 0.51}, {}) == []
    (finding,) = told({**half, "gradient_zero_fraction": 0.5, "numel": 64}, {**half, "numel": 64}, {})
    assert "changes only 6.7 % of the elements of a.w0, a.w1" in finding[1]
    assert told({**half, "changed_fraction": 0.1}, {}) == []


def test_the_first_skips_of_a_scaler_are_expected():
    table = audit_findings(audit(BAD, steps=0, skips=[Skip(3, "SGD", 65536.0)]))
    assert table[["rule", "severity", "step", "count"]].to_numpy().tolist() == [["skipped_step", "hint", 3, 1]]
    why = ": NaN or Inf is in the gradient of a.w0"
    assert table["message"].tolist() == [f"GradScaler skips the step of SGD (scale 65536){why}"]
    assert table["advice"].tolist() == [f"Nothing, if it is one of the first steps of training. {SKIPPED}"]
    evidence = json.loads(table["evidence"].iloc[0])
    assert (evidence["scales"], evidence["parameters"]) == ([65536.0], ["a.w0"])


def test_skips_are_counted_by_optimizer_with_their_scales():
    skips = [Skip(0, "SGD", 8.0), Skip(1, "Adam", None), Skip(2, "SGD", 4.0)]
    assert [message for _, message, _ in told({}, {}, skips=skips, steps=2)] == [
        "GradScaler skips 2 of 5 optimizer steps of SGD (scale 8 to 4)",
        "GradScaler skips 1 of 5 optimizer steps of Adam",
    ]
    five = [Skip(n, "SGD", 2.0 ** (9 - n)) for n in range(5)]
    assert told({}, skips=five, steps=0) == [
        ("warning", "GradScaler skips all 5 optimizer steps of SGD (scale 512 to 32)", SKIPPED)
    ]
    assert told({}, skips=five[:4], steps=0)[0][0] == told({}, skips=five, steps=1)[0][0] == "hint"
    assert told({}, skips=[Skip(0, "SGD", 1.0)], steps=3)[0][0] == "warning"
    assert told({}, skips=[Skip(0, "SGD", 1.5)], steps=3)[0][0] == "hint"
