"""The section of an optime trace that says where time could be saved: its findings, those of most time first."""

from collections.abc import Iterator

import pandas as pd

from nbkit.schema import FINDINGS
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section, and_more

COLUMNS = (
    Column("where"),
    Column("share", "fraction"),
    Column("time", "time"),
    Column("calls", "count"),
    Column("line", "sentence"),
    Column("what", "sentence"),
    Column("advice", "sentence"),
)


def savings_section(trace: Trace, count: int) -> Iterator[Section]:
    """Yields the findings that have a time; the share is that of the step's wall time, and shares may overlap."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    timed = findings[findings["effect_us"].notna()].sort_values("effect_us", ascending=False, kind="stable")
    if not len(timed):
        return
    whole_us = float(trace.ops["total_time_us"].iloc[0]) or 1.0
    few = timed.head(count).assign(where=timed.head(count).apply(_where, axis="columns"))
    few["share"] = few["effect_us"] / whole_us
    names = ["where", "share", "effect_us", "count", "source_text", "message", "advice"]
    rows = few[names].to_numpy(object).tolist()
    yield Section("Where time could be saved", COLUMNS, rows, and_more(len(timed), count))


def _where(row: pd.Series) -> str:
    """Returns the line of a finding; its module or op where no line is known."""
    return next((row[name] for name in ("source", "module", "op") if isinstance(row[name], str) and row[name]), "")
