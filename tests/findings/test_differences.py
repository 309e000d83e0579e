"""Wrong tensors of opdiff as findings: grouped by place, worded without elements."""

import json

import pytest
import torch

from nbkit.findings.differences import difference_findings
from nbkit.schema import DIFFS
from tests.capture.diff.planted import scaled, with_fault
from tests.support.fakes import make_ops

BASE = {"op": "aten.mm.default", "module": "fc", "phase": "forward", "role": "output", "position": 0}
OPS = make_ops(*[{"op": "aten.mm.default", "module": "fc", "phase": "forward", "source": "a.py:1"}] * 3)


def found(*rows):
    diffs = DIFFS.frame([{**BASE, "dtype": "float32", "shape": "[2]", **row} for row in rows])
    return difference_findings(diffs, OPS, {"a.py:1": "x @ w"}, "cpu")


def test_the_calls_of_a_line_are_one_finding_about_the_worst_of_them():
    frame = found(
        {"op_id": 0, "status": "mismatch", "noise_ratio": 20.0},
        {"op_id": 1, "status": "ok", "noise_ratio": 1.0},
        {"op_id": 2, "status": "mismatch", "noise_ratio": 300.0},
    )
    [row] = frame.itertuples()
    assert (row.rule, row.severity, row.op_id, row.count, row.source_text) == ("mismatch", "error", 0, 2, "x @ w")
    assert row.message == "output 0 is off by 300x the rounding error (reference: CPU)"
    evidence = json.loads(row.evidence)
    assert (evidence["op_ids"], evidence["diffs_rows"], evidence["calls"]) == ([0, 2], [0, 2], 3)


@pytest.mark.parametrize(
    ("row", "severity", "message"),
    [
        ({"status": "dtype"}, "error", "output 0 has another dtype than on cpu"),
        ({"status": "failed", "message": "no kernel"}, "warning", "output 0 could not be compared: no kernel"),
        ({"status": "mismatch"}, "error", "output 0 differs from cpu by more than the tolerance that was set"),
        (
            {"status": "mismatch", "noise_ratio": float("inf")},
            "error",
            "output 0 has NaN, Inf or integers where cpu has others",
        ),
    ],
    ids=["dtype", "failed", "tolerance", "inf"],
)
def test_each_status_has_its_sentence(row, severity, message):
    [finding] = found({"op_id": 0, **row}).itertuples()
    assert (finding.severity, finding.message) == (severity, message)


def test_a_pattern_is_said_first_and_is_in_the_evidence():
    pattern = {"pattern": "scaled", "pattern_evidence": '{"factor": 1.25}', "status": "mismatch"}
    frame = found(
        {"op_id": 0, "noise_ratio": 20.0, **pattern},
        {"op_id": 1, "noise_ratio": 30.0, **pattern},
        {"op_id": 2, "noise_ratio": 9.0, "status": "mismatch"},
    )
    assert frame["message"].tolist() == [
        "output 0 is 1.25 x the reference, and is off by 30x the rounding error (reference: CPU)",
        "output 0 is off by 9x the rounding error (reference: CPU)",
    ]
    evidence = json.loads(frame["evidence"].iloc[0])
    assert (evidence["pattern"], evidence["pattern_evidence"], evidence["calls"]) == ("scaled", {"factor": 1.25}, 3)
    assert "pattern" not in json.loads(frame["evidence"].iloc[1])


def test_what_is_right_is_no_finding():
    assert not len(found(*({"op_id": 0, "status": status} for status in ("ok", "reduced", "skipped"))))


def test_a_planted_fault_is_the_one_finding_of_its_step():
    x = torch.randn(8, 8)
    trace = with_fault(lambda: (x @ x).sum(), "aten.mm.default", scaled)
    [finding] = trace.findings.itertuples()
    assert (finding.rule, finding.op) == ("mismatch", "aten.mm.default")
    assert "(x @ x).sum()" in finding.source_text
