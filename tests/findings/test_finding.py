"""Findings as a frame: where they stand, how they are counted, and those of two verbs in one list."""

import json

import numpy as np
import pytest

from nbkit.findings.finding import (
    Finding,
    Rule,
    at_ops,
    calls_of,
    findings_frame,
    line_texts,
    rule,
    rules_in,
    with_findings,
    wrong,
)
from nbkit.schema import LINES
from tests.support.fakes import make_ops

A_FINDING = Finding("slow", "hint", "it takes long", "do it once", effect_us=2.5)


@pytest.fixture
def known_rules(monkeypatch):
    """Holds the rules that a test defines, apart from those of nbkit."""
    rules = []
    monkeypatch.setattr("nbkit.findings.finding.RULES", rules)
    return rules


def ops():
    here = {"op": "aten.mm.default", "module": "fc", "phase": "forward", "source": "train.py:7"}
    return make_ops(here, {**here, "step": 1}, {**here, "module": None}, {**here, "step": 1})


def test_a_finding_stands_at_its_first_op_and_says_how_many_calls_the_place_has():
    found = at_ops(A_FINDING, ops(), [1, 3], {"train.py:7": "y = fc(x)"})
    assert (found.op_id, found.op, found.module, found.step) == (1, "aten.mm.default", "fc", 1)
    assert (found.source, found.source_text, found.count) == ("train.py:7", "y = fc(x)", 2)
    assert found.evidence == {"op_ids": [1, 3], "calls": 3}
    assert (found.rule, found.effect_us) == ("slow", 2.5)


def test_a_finding_in_a_library_has_the_users_own_line():
    of_both = ops().assign(own_source=["net.py:3", None, None, None])
    assert at_ops(A_FINDING, of_both, [0, 1], {}).own_source == "net.py:3"
    assert at_ops(A_FINDING, of_both, [1], {}).own_source is None


def test_calls_outside_modules_are_told_from_those_inside():
    assert at_ops(A_FINDING, ops(), [2], {}).evidence["calls"] == 1


def test_a_frame_has_all_of_a_finding():
    frame = findings_frame([at_ops(A_FINDING, ops(), [0], {}), Finding("tied", "warning", "b is a", "")])
    assert frame["op_id"].tolist()[0] == 0 and frame["op_id"].isna().tolist() == [False, True]
    assert json.loads(frame["evidence"][0])["op_ids"] == [0]
    assert frame["effect_us"].tolist()[0] == 2.5
    assert wrong(frame)["rule"].tolist() == ["tied"]


def test_findings_of_two_verbs_stand_in_the_order_of_their_ops():
    first, second, of_none = (findings_frame([found]) for found in (
        at_ops(A_FINDING, ops(), [0], {}), at_ops(A_FINDING, ops(), [2], {}), Finding("tied", "warning", "b is a", ""),
    ))  # fmt: skip
    frames = with_findings(with_findings(with_findings({}, of_none), second), first)
    assert frames["findings"]["op_id"].dropna().tolist() == [0, 2]
    assert frames["findings"]["rule"].tolist() == ["slow", "slow", "tied"]


def test_lines_that_nobody_has_any_more_have_no_text():
    lines = LINES.frame({"source": ["a.py:1", "b.py:2"], "text": ["x = 1", None]})
    assert line_texts(lines) == {"a.py:1": "x = 1"}
    assert line_texts(None) == {}


def test_calls_of_evidence_that_nobody_can_read_are_not_known():
    assert calls_of('{"calls": 3}') == 3
    assert [calls_of(text) for text in ('{"calls": "<b>"}', "<script>", "[]", "{}", None)] == [None] * 5


def test_evidence_is_json_that_every_reader_takes():
    found = Finding("r", "error", "so", "", evidence={"ratio": float("inf"), "count": np.int64(3), "of": [np.nan]})
    assert findings_frame([found])["evidence"][0] == '{"ratio": "inf", "count": 3, "of": ["nan"]}'


def test_a_rule_has_its_function_s_name_and_docstring(known_rules):
    @rule("warning", "hint", verbs=("opaudit",))
    def lost_weight(step):
        """A weight is lost,
        or two.

        What a reader of the code has to know.
        """
        yield lost_weight.finding(f"{step} is lost", "Look for it.", 3, severity="hint", evidence={"a": 1})

    assert known_rules == [lost_weight]
    assert (lost_weight.names, lost_weight.condition) == (("lost_weight",), "A weight is lost, or two.")
    assert lost_weight("w") == [
        Finding("lost_weight", "hint", "w is lost", "Look for it.", op_id=3, evidence={"a": 1}),
    ]


def test_a_rule_makes_findings_of_its_names_and_severities_only(known_rules):
    one = Rule(("lost", "found"), ("error",), ("opaudit",), "It is so.")
    assert one.finding("m", "a", name="found") == Finding("found", "error", "m", "a")
    for wrong_use in ({"name": "gone"}, {"name": "lost", "severity": "hint"}, {}):
        with pytest.raises(ValueError, match="has no|too many values"):
            one.finding("m", "a", **wrong_use)


def test_rules_are_found_in_the_files_of_a_package_and_applied_by_rank(tmp_path, monkeypatch, known_rules):
    text = "from nbkit.findings.finding import rule\n"
    define = '@rule("hint", rank={}, verbs=("opaudit",))\ndef {}(step):\n    """It is so."""\n    return []\n'
    (tmp_path / "some_rules").mkdir()
    for file, rules in (("__init__", ()), ("b", ((10, "first"),)), ("a", ((30, "last"), (20, "second")))):
        source = text + "".join(define.format(*one) for one in rules)
        (tmp_path / "some_rules" / f"{file}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert [one.names for one in rules_in("some_rules")] == [("first",), ("second",), ("last",)]
