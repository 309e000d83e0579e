"""Brief: what a recording says in one screen of plain text, ranked, and what nobody has looked at."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbkit.findings.finding import calls_of
from nbkit.schema import FINDINGS
from nbkit.schema.findings import SEVERITIES
from nbkit.trace.trace import Trace
from nbkit.views.summary import units
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown

TOKENS = 1500
# Of English and code, as tokenisers of language models cut them: a token has three characters at least, mostly four.
CHARACTERS_PER_TOKEN = 3.5
# Of a line, such as the names of many parameters.
LONGEST = 500
# Figures of a recording that a reader of findings needs; the summary has all.
FIGURES = {"aten ops": "{} aten ops", "wall time": "{}", "device": "{}", "devices": "{}", "torch": "torch {}"}


@dataclass(frozen=True)
class Look:
    """Describes what can be looked at: by which verb, and what of the trace shows that it was."""

    question: str
    verb: str
    shown_by: Callable[[Trace], object]

    def was_taken(self, trace: Trace) -> bool:
        return bool(self.shown_by(trace))


LOOKS = (
    Look("NaN, Inf and lost precision", "opcheck", lambda trace: trace.meta.get("checked_tensors")),
    Look("results against a reference", "opdiff", lambda trace: "diffs" in trace.frames),
    Look("parameters, gradients and dataflow of training", "opaudit", lambda trace: "parameters" in trace.frames),
    Look("where the time goes", "optime", lambda trace: trace.meta.get("verb") == "optime"),
)


def brief(trace: Trace, tokens: int = TOKENS) -> str:
    """Returns the brief of a trace in about so many tokens at most; findings that do not fit are counted."""
    findings = ranked(trace.frames.get("findings", FINDINGS.frame()))
    head, tail = [_what_ran(trace), _verdict(trace, findings)], _not_looked_at(trace)
    entries = [_entry(number, row) for number, row in enumerate(findings.to_dict("records"), start=1)]
    room = tokens * CHARACTERS_PER_TOKEN - sum(len(text) + 2 for text in (*head, tail, _left_out(len(entries))))
    lengths = np.cumsum([len(entry) + 2 for entry in entries])
    kept = int((lengths <= room).sum())
    return "\n\n".join(text for text in (*head, *entries[:kept], _left_out(len(entries) - kept), tail) if text)


def _left_out(count: int) -> str:
    return f"{units.counted(count, 'further finding')} in trace.findings." if count else ""


def ranked(findings: pd.DataFrame) -> pd.DataFrame:
    """Returns findings, errors first, then by the time or memory that they take; else in the order of their ops."""
    ranks = {severity: rank for rank, severity in enumerate(SEVERITIES)}
    keys = pd.DataFrame(
        {
            "severity": findings["severity"].map(ranks).fillna(len(ranks)),
            "effect_us": -findings["effect_us"].fillna(0.0),
            "effect_bytes": -findings["effect_bytes"].astype("float64").fillna(0.0),
        }
    )
    return findings.loc[keys.sort_values([*keys], kind="stable").index]


def _what_ran(trace: Trace) -> str:
    known = facts(trace)
    figures = [FIGURES[label].format(value) for label, value in known.figures if label in FIGURES]
    incomplete = f" {known.incomplete}" if known.incomplete else ""
    return f"{known.title}: {', '.join(figures) or 'nothing recorded'}.{incomplete}"


def _verdict(trace: Trace, findings: pd.DataFrame) -> str:
    counts = [(severity, int((findings["severity"] == severity).sum())) for severity in SEVERITIES]
    if any(number for _, number in counts):
        text = ", ".join(units.counted(number, severity) for severity, number in counts if number)
        return f"{text}{', the worst first' if len(findings) > 1 else ''}."
    looked = [look.question for look in LOOKS if look.was_taken(trace)]
    return f"Nothing wrong found in what was looked at: {'; '.join(looked)}." if looked else "Nothing was judged."


def _entry(number: int, row: dict[Hashable, Any]) -> str:
    """Returns a finding in three lines: what is so, where it is, what to do."""
    lines = [
        f"{number}. {row['severity']}, {row['rule']}: {_what(row)}.{_effect(row)}",
        _where(row),
        str(row["advice"]),
    ]
    return "\n   ".join(shown(line, LONGEST) for line in lines if line)


def _what(row: dict[Hashable, Any]) -> str:
    calls = calls_of(row["evidence"])
    many = (
        f" ({units.count(row['count'])} of {units.count(calls)} calls)" if calls and 1 < row["count"] <= calls else ""
    )
    # Most messages name their op.
    is_missing = isinstance(row["op"], str) and ".".join(row["op"].split(".")[1:2]) not in row["message"]
    return f"{row['op'] + ': ' if is_missing else ''}{row['message']}{many}"


def _effect(row: dict[Hashable, Any]) -> str:
    time, size = row["effect_us"], row["effect_bytes"]
    takes = [
        *([] if pd.isna(time) else [units.duration(time)]),
        *([] if pd.isna(size) else [units.data_size(size)]),
    ]
    return f" It takes {' and '.join(takes)}." if takes else ""


def _where(row: dict[Hashable, Any]) -> str:
    module = [f"in {row['module'] or 'the root module'}"] if isinstance(row["module"], str) else []
    step = [f"in step {row['step']}"] if row["step"] else []
    text = f": `{row['source_text']}`" if isinstance(row["source_text"], str) else ""
    line = [f"{row['source']}{text}"] if isinstance(row["source"], str) else []
    return ", ".join([*module, *step, *line])


def _not_looked_at(trace: Trace) -> str:
    missing = [f"{look.question} (nbkit.{look.verb})" for look in LOOKS if not look.was_taken(trace)]
    return f"Not looked at: {'; '.join(missing)}." if missing else ""
