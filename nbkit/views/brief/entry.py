"""Entry words a cause: what is so, where it is, what follows, what to do. Every view and report shows these words."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.findings.causes import FOLLOWS, ORIGINS, SAME_LINE, SAME_OP, causes_of, read_evidence
from nbkit.findings.finding import DIVERGENCE, calls_of
from nbkit.findings.training.names import some
from nbkit.schema import FINDINGS, OPS
from nbkit.schema.findings import ANOTHER_RUN, SEVERITIES
from nbkit.trace.trace import Trace
from nbkit.views.summary.names import line_text, short_paths, shown

# Of a line, such as the names of many parameters.
LONGEST = 500
Row = dict[Hashable, Any]
MOST_PARTS = 5
# What a tensor held, by its count in the evidence.
HELD = {"NaN": "nan_count", "Inf": "inf_count"}


@dataclass(frozen=True)
class Entry:
    """Words a finding; `where` may be empty, `op_id` is null where it is about no op. `row` is the finding itself.

    `follows` words the findings that go back to it, empty without any; `consequences` counts them.
    """

    severity: str
    rule: str
    what: str
    where: str
    advice: str
    op_id: int | None
    row: dict[Hashable, Any]
    follows: str = ""
    consequences: int = 0


def entries(trace: Trace) -> list[Entry]:
    """Returns the causes among the findings of a trace, the worst first, each with what follows from it."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    findings = findings[findings["rule"] != DIVERGENCE].reset_index(drop=True)  # the verdict of its trace says it
    if findings.empty:
        return []
    with_step = has_steps(trace)
    links = causes_of(findings)
    of_cause = dict(tuple(links.groupby("cause")))
    # A cause is as severe as the worst that comes of it.
    groups = links["cause"].fillna(pd.Series(findings.index)).astype("int64")
    worst = findings["severity"].map(severity_rank).groupby(groups).idxmin()
    causes = ranked(findings.loc[worst.index].assign(severity=findings["severity"].loc[worst].array))
    return [
        _entry(row, findings.loc[of.index], of["relation"].tolist(), with_step=with_step)
        for at, row in zip(causes.index, causes.to_dict("records"), strict=True)
        for of in [of_cause.get(at, links[:0])]
    ]


def ranked(findings: pd.DataFrame) -> pd.DataFrame:
    """Returns findings, errors first, then by the time or memory that they take, then by step and op.

    Hints at what may be wrong stand before those at what could be saved, which have an effect.
    """
    keys = pd.DataFrame(
        {
            "severity": findings["severity"].map(severity_rank),
            "saves": (findings["severity"] == "hint") & findings[["effect_us", "effect_bytes"]].notna().any(axis=1),
            "effect_us": -findings["effect_us"].fillna(0.0),
            "effect_bytes": -findings["effect_bytes"].astype("float64").fillna(0.0),
            "step": findings["step"],
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


def _entry(row: dict[Hashable, Any], of: pd.DataFrame, relations: Sequence[str], *, with_step: bool) -> Entry:
    what = f"{_what(row)}.{_effect(row)}"
    if SAME_OP in relations:
        what = f"{row['op']}: {read_evidence(row['evidence'])['of_op']}. Worst: {row['message']}."
    return Entry(
        str(row["severity"]),
        shown(str(row["rule"])),
        shown(short_paths(what), LONGEST),
        shown(short_paths(_where(row, with_step=with_step)), LONGEST),
        shown(str(row["advice"]), LONGEST),
        None if pd.isna(row["op_id"]) else int(row["op_id"]),
        row,
        shown(consequences_text(of.to_dict("records"), relations), LONGEST),
        relations.count(FOLLOWS),
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
    number = int(row["step"])
    step = ["in another run"] if number == ANOTHER_RUN else [f"in step {number}"] if with_step or number else []
    line = line_text(row["source"], row["own_source"], row["source_text"])
    return ", ".join([*module, *step, *([line] if line and line not in str(row["message"]) else [])])


def consequences_text(rows: Sequence[Row], relations: Sequence[str]) -> str:
    """Returns sentences such as '31 further errors follow from it: the loss is NaN from step 211 on.'; '' for none."""
    pairs = [*zip(rows, relations, strict=True)]
    same, following = ([row for row, how in pairs if how == wanted] for wanted in (SAME_LINE, FOLLOWS))
    return " ".join(filter(None, (_same_line(same), _following(following))))


def _same_line(rows: Sequence[Row]) -> str:
    modules = [str(row["module"]) or "the root module" for row in rows if isinstance(row["module"], str)]
    places = f": {some(modules)}" if modules else ""
    return f"The same in {units.counted(len(rows), 'other module')}{places}." if rows else ""


def _following(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    severities = {str(row["severity"]) for row in rows}
    noun = f"further {severities.pop() if len(severities) == 1 else 'finding'}"
    parts = _parts(rows)
    more = [f"{len(parts) - MOST_PARTS} more"] if len(parts) > MOST_PARTS else []
    told = "; ".join([*parts[:MOST_PARTS], *more])
    return f"{units.counted(len(rows), noun)} follow{'s' if len(rows) == 1 else ''} from it: {told}."


def _parts(rows: Sequence[Row]) -> list[str]:
    """Returns what the findings tell, those of the same kind in one part."""
    states = [row for row in rows if row["rule"] == "input"]
    made = [row for row in rows if row["rule"] in ORIGINS]
    other: dict[str, list[Row]] = {}
    for row in rows:
        if row["rule"] not in ("input", *ORIGINS):
            other.setdefault(str(row["rule"]), []).append(row)
    return [*map(_other, other.values()), *([_made(made)] if made else []), *([_states(states)] if states else [])]


def _other(rows: Sequence[Row]) -> str:
    message = str(rows[0]["message"]).removesuffix(".")
    is_word = message.split(" ")[0][1:].islower()  # and no name, such as GradScaler
    more = f" ({len(rows) - 1} more)" if len(rows) > 1 else ""
    return f"{message[:1].lower() if is_word else message[:1]}{message[1:]}{more}"


def _made(rows: Sequence[Row]) -> str:
    ops = [*dict.fromkeys(str(row["op"]) for row in rows)]
    phases = {row["phase"] for row in rows}
    where = f" ({phases.pop()})" if phases in ({"forward"}, {"backward"}) else ""
    rules = {row["rule"] for row in rows}
    what = "NaN" if rules == {"nan"} else "NaN or Inf" if "nan" in rules else "Inf"
    return f"{what} in {some(ops)}{where}"


def _states(rows: Sequence[Row]) -> str:
    names = [*dict.fromkeys(str(row["parameter"]) for row in rows if isinstance(row["parameter"], str))]
    what = units.counted(len(names), "parameter") if names else "the state of the optimizer"
    verb = "was" if len(names) < 2 else "were"
    listed = f" ({some(names)})" if names else ""
    counts = [read_evidence(row["evidence"]) for row in rows]
    held = [kind for kind, count in HELD.items() if any(one.get(count) for one in counts)]
    step = min(int(row["step"]) for row in rows)
    return f"{what} {verb} already {' or '.join(held) or 'NaN or Inf'} before step {step}{listed}"
