"""What a report says to the question whether anything is wrong."""

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, findings_frame
from nbkit.schema import DIFFS
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Link, Statement
from nbkit.views.statements.verdict import check_verdict, difference_verdict, values_verdict
from tests.fakes import make_tensors, make_trace, small_trace
from tests.views.report.told import told


def links(statement: Statement) -> list[Link]:
    return [part for words in statement.sentences for part in words if isinstance(part, Link)]


def with_counts(nan: list[int], inf: list[int]) -> Trace:
    """Ops 1, 2 and 3 with a result each, of so many NaN and Inf; op 2 reads a NaN."""
    tensors = make_tensors((1, "output", 1), (2, "output", 2), (3, "output", 3), (2, "input", 9))
    counts = {"nan_count": pd.array([*nan, 5], "Int64"), "inf_count": pd.array([*inf, 0], "Int64")}
    return make_trace(small_trace().ops, tensors.assign(**counts))


def test_values_that_were_read_are_judged_by_their_nan_and_inf() -> None:
    found = values_verdict(with_counts([0, 0, 7], [0, 2, 2]))
    assert (found.tone, told(found)) == ("bad", [
        "1 of 3 results hold NaN, first that of aten.sum.default outside modules, forward (train.py:9).",
        "2 of 3 results hold Inf, first that of aten.relu.default in (root), forward (train.py:8).",
    ])  # fmt: skip
    assert links(found) == [Link("aten.sum.default", "op_table", 3), Link("aten.relu.default", "op_table", 2)]
    # A mask is made of Inf.
    assert values_verdict(with_counts([0, 0, 0], [0, 2, 2])).tone == ""
    fine = values_verdict(with_counts([0, 0, 0], [0, 0, 0]))
    assert (fine.tone, told(fine)) == ("good", ["No NaN and no Inf in the 3 results whose values were read."])


def findings(*rows: tuple[int, str]) -> Trace:
    made = [
        Finding(rule, "error", "1 of 2", "", op_id=op_id, op="aten.mm.default", module="fc", phase="forward")
        for op_id, rule in rows
    ]
    trace = small_trace(verb="opcheck", checked_tensors=14)
    trace.frames["findings"] = findings_frame(made)
    return trace


def test_the_first_bad_op_is_named_and_the_others_counted() -> None:
    found = check_verdict(findings((1, "overflow"), (6, "nan")))
    assert (found.tone, told(found)) == ("bad", [
        "overflow, first at aten.addmm.default in fc, forward (train.py:7): 1 of 2", "1 further finding after it.",
    ])  # fmt: skip
    assert links(found) == [Link("aten.addmm.default", "op_table", 1), Link("1 further finding", "found")]


def test_the_first_bad_op_is_named_with_its_step_if_there_are_several() -> None:
    trace = findings((1, "overflow"))
    trace.frames["findings"] = trace.findings.assign(step=2)
    assert told(check_verdict(trace))[0].startswith("overflow, first in step 2 at aten.addmm.default in fc, forward")


def test_nothing_wrong_is_said_only_of_what_was_looked_at() -> None:
    fine = check_verdict(findings())
    assert fine.tone == "good"
    assert told(fine) == ["Nothing wrong found: in 14 results no NaN, Inf or underflow began."]
    nothing = check_verdict(small_trace(verb="opcheck"))
    assert (nothing.tone, told(nothing)) == ("", ["Not checked: no result was examined."])


def compared(*rows: tuple[int, str, float]) -> Trace:
    base = {"op": "aten.mm.default", "module": "fc", "phase": "backward", "role": "output", "position": 0}
    made = [
        {**base, "op_id": op, "dtype": "float32", "status": status, "noise_ratio": ratio} for op, status, ratio in rows
    ]
    trace = small_trace(verb="opdiff", reference="cpu:float64")
    trace.frames["diffs"] = DIFFS.frame(made)
    return trace


def test_the_first_difference_is_named_before_the_worst() -> None:
    found = difference_verdict(
        compared((1, "ok", 1.0), (2, "mismatch", 20.0), (3, "mismatch", 45.5), (6, "failed", np.nan))
    )
    one = "aten.mm.default in fc, backward"
    assert (found.tone, told(found)) == ("bad", [
        "3 of 4 compared tensors differ from cpu:float64 by more than rounding allows, or could not be compared.",
        f"First in the step: {one} (mismatch, noise ratio 20).",
        f"Worst: {one} (mismatch, noise ratio 45.5); {one} (mismatch, noise ratio 20); {one} (failed).",
    ])  # fmt: skip
    assert [(link.widget, link.value) for link in links(found)] == [("diff_table", row) for row in (1, 2, 1, 3)]


def test_right_ops_and_skipped_ones_are_no_difference() -> None:
    fine = difference_verdict(compared((1, "ok", 1.0), (2, "skipped", np.nan)))
    assert fine.tone == "good"
    assert told(fine) == ["Nothing wrong found: 1 compared tensor, none further from cpu:float64 than rounding allows."]
    assert told(difference_verdict(compared((2, "skipped", np.nan)))) == ["Not checked: no tensor was compared."]
