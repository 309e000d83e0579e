"""Sections of an opcheck trace: where values went wrong, and what led to the first of them."""

import pandas as pd

from nbkit.analysis.values.producers import producers
from nbkit.schema import FINDINGS
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section
from nbkit.views.summary import units
from nbkit.views.summary.names import shown

KINDS = {
    "nan": "NaN",
    "inf": "Inf",
    "overflow": "overflow",
    "underflow": "underflow",
    "input": "came in",
}
FIGURES = ("kind", "phase", "module", "source", "what happened")


def check_sections(trace: Trace, count: int) -> list[Section]:
    """The findings in call order, and the ops that the first one goes back to."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    if not len(findings):
        return [Section("Where values go wrong", "op", (), [[nothing_text(trace)]])]
    more = len(findings) - count
    rows = [_finding(row) for _, row in findings.head(count).iterrows()]
    rows += [[f"and {units.count(more)} more", *[None] * len(FIGURES)]] if more > 0 else []
    return [Section("Where values go wrong, first to last", "op", FIGURES, rows), *_origin(trace, findings)]


def nothing_text(trace: Trace) -> str:
    """What a trace without findings says: how much was looked at, and what holds NaN or Inf all the same."""
    looked, propagated = (int(trace.meta.get(name, 0)) for name in ("checked_tensors", "propagated_ops"))
    if not looked:
        return "Nothing was checked: no result was looked at."
    text = f"Nothing wrong found: in {units.counted(looked, 'result')} no NaN, Inf or underflow began."
    if not propagated:
        return text
    hold = "1 of them holds" if propagated == 1 else f"{units.count(propagated)} of them hold"
    return f"{text} {hold} NaN or Inf that was given as a number, such as the -Inf of a mask."


def _finding(row: "pd.Series[str]") -> list[str | None]:
    texts = [row["phase"], row["module"], row["source"], row["message"]]
    return [shown(row["op"]), KINDS.get(row["kind"], row["kind"]), *(_shown(text) for text in texts)]


def _origin(trace: Trace, findings: pd.DataFrame) -> list[Section]:
    wrong = findings[findings["kind"] != "input"]
    if not len(wrong):
        return []
    found = producers(trace, int(wrong["op_id"].iloc[0]))
    rows = [
        [shown(row["op"]), units.count(row["distance"]), *(_shown(row[name]) for name in ("phase", "module", "source"))]
        for _, row in found.iterrows()
    ]
    return (
        [Section("Where the inputs of the first came from", "op", ("ops before", "phase", "module", "source"), rows)]
        if rows
        else []
    )


def _shown(text: object) -> str | None:
    return shown(text) if isinstance(text, str) and text else None
