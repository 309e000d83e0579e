"""Sections of an opcheck trace: where values went wrong, and what led to the first of them."""

import pandas as pd

from nbkit.analysis.values.producers import producers
from nbkit.findings.finding import calls_of
from nbkit.schema import FINDINGS, OPS
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
# Columns of the frame, and how the table shows them.
FINDING = {
    "op": Column("op"),
    "rule": Column("kind"),
    "calls": Column("calls"),
    "phase": Column("phase", "phase"),
    "step": Column("step", "id"),
    "module": Column("module"),
    "source": Column("source"),
    "source_text": Column("line", "sentence"),
    "message": Column("what happened", "sentence"),
}
ORIGIN = (Column("op"), Column("ops before", "count"), Column("phase", "phase"), *columns("module, source"))


def check_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the findings in call order, and the ops that the first one goes back to."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    if not len(findings):
        return [Section("Where values go wrong", (Column("", "sentence"),), [[nothing_text(trace)]])]
    more = and_more(len(findings), count)
    absent = set() if has_steps(trace) else {"step"}
    absent |= {"source_text"} if findings["source_text"].isna().all() else set()
    absent |= set() if (findings["count"] > 1).any() else {"calls"}
    names = [name for name in FINDING if name not in absent]
    few = findings.head(count)
    shown = few.assign(rule=few["rule"].replace(KINDS), calls=[*map(_calls, few["count"], few["evidence"])])
    rows = shown[names].to_numpy(object).tolist()
    labels = [FINDING[name] for name in names]
    return [Section("Where values go wrong, first to last", labels, rows, more), *_origin(trace, findings)]


def has_steps(trace: Trace) -> bool:
    """Returns whether findings may be of several steps: work after the last one, as of zero_grad(), makes no step."""
    ops, findings = (trace.frames.get(table.name, table.frame()) for table in (OPS, FINDINGS))
    return len({*ops["step"][ops["phase"] == "backward"], *findings["step"]}) > 1


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


def _calls(count: int, evidence: object) -> str:
    """Returns '15 of 15': how many calls of an op, from the same line and module, a finding stands for."""
    return f"{units.count(count)} of {units.count(calls_of(evidence) or count)}"


def _origin(trace: Trace, findings: pd.DataFrame) -> list[Section]:
    wrong = findings[(findings["rule"] != "input") & findings["op_id"].notna()]
    if not len(wrong):
        return []
    before = producers(trace, int(wrong["op_id"].iloc[0]))
    rows = before[["op", "distance", "phase", "module", "source"]].to_numpy(object).tolist()
    return [Section("Where the inputs of the first came from", ORIGIN, rows)] if rows else []
