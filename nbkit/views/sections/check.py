"""Sections of an opcheck trace: where values went wrong, and what led to the first of them."""

import pandas as pd

from nbkit.analysis.values.producers import producers
from nbkit.schema import FINDINGS
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section, and_more, columns
from nbkit.views.summary import units

KINDS = {
    "nan": "NaN",
    "inf": "Inf",
    "overflow": "overflow",
    "underflow": "underflow",
    "input": "came in",
}
FINDING = (
    *columns("op, kind"),
    Column("phase", "phase"),
    *columns("module, source"),
    Column("what happened", "sentence"),
)
ORIGIN = (Column("op"), Column("ops before", "count"), Column("phase", "phase"), *columns("module, source"))


def check_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the findings in call order, and the ops that the first one goes back to."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    if not len(findings):
        return [Section("Where values go wrong", (Column("", "sentence"),), [[nothing_text(trace)]])]
    more = and_more(len(findings), count)
    rows = [_finding(row) for _, row in findings.head(count).iterrows()]
    return [Section("Where values go wrong, first to last", FINDING, rows, more), *_origin(trace, findings)]


def nothing_text(trace: Trace) -> str:
    """Words the result of a trace without findings: how much was checked, and what contains expected NaN or Inf."""
    names = ("checked_tensors", "propagated_ops", "discarded_ops")
    looked, propagated, discarded = (int(trace.meta.get(name, 0)) for name in names)
    if not looked:
        return "Not checked: no result was examined."
    text = f"Nothing wrong found: in {units.counted(looked, 'result')} no NaN, Inf or underflow began."
    if propagated:
        hold = "1 of them contains" if propagated == 1 else f"{units.count(propagated)} of them contain"
        text += f" {hold} NaN or Inf constants that are expected, such as the -Inf of a mask."
    if discarded:
        text += f" {units.counted(discarded, 'op')} made Inf that was thrown away: only integers were made of it."
    return text


def _finding(row: "pd.Series[str]") -> list[object]:
    kind = KINDS.get(row["kind"], row["kind"])
    return [row["op"], kind, *(row[name] for name in ("phase", "module", "source", "message"))]


def _origin(trace: Trace, findings: pd.DataFrame) -> list[Section]:
    wrong = findings[findings["kind"] != "input"]
    if not len(wrong):
        return []
    before = producers(trace, int(wrong["op_id"].iloc[0]))
    rows = before[["op", "distance", "phase", "module", "source"]].to_numpy(object).tolist()
    return [Section("Where the inputs of the first came from", ORIGIN, rows)] if rows else []
