"""Entry words a finding: what is so, where it is, what to do. Every view and report shows these words."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.findings.finding import calls_of
from nbkit.schema import FINDINGS, OPS
from nbkit.schema.findings import SEVERITIES
from nbkit.trace.trace import Trace
from nbkit.views.summary.names import short_paths, shown

# Of a line, such as the names of many parameters.
LONGEST = 500


@dataclass(frozen=True)
class Entry:
    """Words a finding; `where` may be empty, `op_id` is null where it is about no op. `row` is the finding itself."""

    severity: str
    rule: str
    what: str
    where: str
    advice: str
    op_id: int | None
    row: dict[Hashable, Any]


def entries(trace: Trace) -> list[Entry]:
    """Returns the findings of a trace, the worst first."""
    findings = ranked(FINDINGS.check(trace.frames.get("findings", FINDINGS.frame())))
    with_step = has_steps(trace)
    return [_entry(row, with_step=with_step) for row in findings.to_dict("records")]


def ranked(findings: pd.DataFrame) -> pd.DataFrame:
    """Returns findings, errors first, then by the time or memory that they take; else in the order of their ops.

    Hints at what may be wrong stand before those at what could be saved, which have an effect.
    """
    keys = pd.DataFrame(
        {
            "severity": findings["severity"].map(severity_rank),
            "saves": (findings["severity"] == "hint") & findings[["effect_us", "effect_bytes"]].notna().any(axis=1),
            "effect_us": -findings["effect_us"].fillna(0.0),
            "effect_bytes": -findings["effect_bytes"].astype("float64").fillna(0.0),
        }
    )
    return findings.loc[keys.sort_values([*keys], kind="stable").index]


def severity_rank(severity: str) -> int:
    """Returns the place of a severity in their order, errors first; those that nobody knows come last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def has_steps(trace: Trace) -> bool:
    """Returns whether findings may be of several steps: work after the last one, as of zero_grad(), makes no step."""
    ops, findings = (trace.frames.get(table.name, table.frame()) for table in (OPS, FINDINGS))
    return len({*ops["step"][ops["phase"] == "backward"], *findings["step"]}) > 1


def _entry(row: dict[Hashable, Any], *, with_step: bool) -> Entry:
    what = f"{_what(row)}.{_effect(row)}"
    return Entry(
        str(row["severity"]),
        shown(str(row["rule"])),
        shown(short_paths(what), LONGEST),
        shown(short_paths(_where(row, with_step=with_step)), LONGEST),
        shown(str(row["advice"]), LONGEST),
        None if pd.isna(row["op_id"]) else int(row["op_id"]),
        row,
    )


def _what(row: dict[Hashable, Any]) -> str:
    message, calls, count = str(row["message"]), calls_of(row["evidence"]), units.count(row["count"])
    # Messages that count say it themselves.
    is_said = any(f"{start}{count} " in f" {message}" for start in (" ", "("))
    is_counted = calls and 1 < row["count"] <= calls and not is_said
    many = f" ({count} of {units.count(calls)} calls)" if is_counted else ""
    # Most messages name their op.
    is_missing = isinstance(row["op"], str) and ".".join(row["op"].split(".")[1:2]) not in message
    return f"{row['op'] + ': ' if is_missing else ''}{message.removesuffix('.')}{many}"


def _effect(row: dict[Hashable, Any]) -> str:
    time, size = row["effect_us"], row["effect_bytes"]
    is_said = "of the step" in str(row["message"])
    takes = [
        *([] if pd.isna(time) or is_said else [units.duration(time)]),
        *([] if pd.isna(size) else [units.data_size(size)]),
    ]
    return f" It takes {' and '.join(takes)}." if takes else ""


def _where(row: dict[Hashable, Any], *, with_step: bool) -> str:
    """Returns module, step and line, without what the message has said."""
    module = []
    if isinstance(row["module"], str):
        module = [f"in module {row['module']}" if row["module"] else "in the root module"]
    step = [f"in step {row['step']}"] if with_step or row["step"] else []
    text = f": `{row['source_text']}`" if isinstance(row["source_text"], str) else ""
    line = f"{row['source']}{text}" if isinstance(row["source"], str) else ""
    return ", ".join([*module, *step, *([line] if line and line not in str(row["message"]) else [])])
