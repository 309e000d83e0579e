"""Findings of several recordings in one list."""

import json

import pandas as pd

from nbkit.findings.finding import Finding, findings_frame
from nbkit.findings.steps.recordings import RecordedSteps, findings_of_steps


def finding(rule, op_id=None, **fields):
    evidence = {} if op_id is None else {"op_ids": [op_id]}
    return Finding(rule, "warning", f"{rule} is so", "Mend it.", op_id=op_id, evidence=evidence, **fields)


def recorded(name, findings, steps, begins=()):
    ops = pd.DataFrame({"start_us": [0.0, 10.0, 20.0, 30.0]})
    return RecordedSteps(name, findings_frame(findings), ops, steps, begins)


def test_each_is_placed_in_its_step_by_its_time_and_told_once():
    first = recorded(
        "audit", [finding("a", 0), finding("b", 2), finding("c", parameter="w")], [4, 5, 5], [0.0, 15.0, 25.0]
    )
    later = recorded("step=9", [finding("a", 3), finding("d", 1), finding("c", parameter="v")], [9])
    later.others.append(finding("data", step=9))
    table = findings_of_steps([first, later], [finding("loss_spike", step=9)])
    rows = [(row.rule, row.step, None if pd.isna(row.op_id) else row.op_id) for row in table.itertuples()]
    assert rows == [
        ("loss_spike", 9, None),
        ("a", 4, 0),
        ("b", 5, 2),
        ("c", 4, None),
        ("data", 9, None),
        ("d", 9, None),
        ("c", 9, None),
    ]
    assert json.loads(table["evidence"].iloc[5]) == {"recording": "step=9", "op_ids": [1]}
    assert json.loads(table["evidence"].iloc[1]) == {"op_ids": [0]}


def test_evidence_that_is_no_json_object_gives_way_to_the_name_of_the_recording():
    later = recorded("step=9", [finding("a", 3), finding("b", 1)], [9])
    later.findings["evidence"] = ["seen by eye", "[3]"]
    table = findings_of_steps([recorded("audit", [], [4]), later], [])
    assert [json.loads(text) for text in table["evidence"]] == [{"recording": "step=9"}] * 2


def test_no_recording_leaves_what_the_steps_show():
    assert findings_of_steps([], [])["rule"].tolist() == []
    assert findings_of_steps([], [finding("loss_spike")])["rule"].tolist() == ["loss_spike"]
