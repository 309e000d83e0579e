"""Findings as a frame: where they stand, how they are counted, and those of two verbs in one list."""

import json

import numpy as np

from nbkit.findings.finding import Finding, at_ops, calls_of, findings_frame, line_texts, with_findings, wrong
from nbkit.schema import LINES
from tests.support.fakes import make_ops

A_FINDING = Finding("slow", "hint", "it takes long", "do it once", effect_us=2.5)


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
