"""Sections of the difference of two traces: of their times where both are timed, else of what they recorded."""

from collections.abc import Iterator

import pandas as pd

from nbkit.analysis.time.compare_times import compare_counts
from nbkit.divergence.side_by_side import BEGINNINGS
from nbkit.schema import TABLES
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section, and_more, columns
from nbkit.views.summary.names import shown, shown_module

CALLS = ["model", "module", "phase", "level", "op"]
TENSORS = ["model", "module", "phase", "op", "role", "position", "dtype", "shape"]
# Title, frame, and the columns by which its rows are the same.
COUNTED = (
    ("Modules that differ", "modules", ["model", "module", "type", "params"]),
    ("Findings that differ", "findings", ["module", "phase", "op", "rule"]),
    ("Verdicts that differ", "diffs", ["module", "phase", "op", "role", "position", "status"]),
)


def time_difference_sections(times: pd.DataFrame, count: int) -> list[Section]:
    """Returns `count` rows of `compare_times`: what is slower or faster beyond noise, or in one trace only.

    None if there is nothing of the kind.
    """
    differs = times[is_different(times)]
    rows = [
        [_place(row), row["verdict"] if isinstance(row["verdict"], str) else row["action"].replace("_", " "),
         *(row[name] for name in ("left_us", "right_us", "change_us", "noise_us"))]
        for _, row in differs.head(count).iterrows()
    ]  # fmt: skip
    kinds = columns("module, verdict, left: time, right: time, change: change, noise: time")
    return [Section("Times that differ", kinds, rows, and_more(len(differs), count))] if rows else []


def is_different(times: pd.DataFrame) -> "pd.Series[bool]":
    """Returns which rows of a frame of `compare_times` are more than noise."""
    return times["verdict"].isin(["slower", "faster"]) | (times["action"] != "match")


def count_difference_sections(left: Trace, right: Trace, count: int) -> list[Section]:
    """Returns calls, shapes, dtypes, modules, findings and verdicts that one trace has more often; none if equal."""
    kinds = columns("row, left: count, right: count")
    return [
        Section(title, kinds, _count_rows(rows.head(count)), and_more(len(rows), count))
        for title, rows in _counted(left, right)
        if len(rows)
    ]


def value_difference_sections(alignment: pd.DataFrame, count: int) -> list[Section]:
    """Returns the ops of `compare_values` at which values begin to differ, in call order; none if none do."""
    begins = alignment[alignment["error_class"].isin(BEGINNINGS)]
    rows = [[_place(row), row.get("source"), row["message"]] for _, row in begins.head(count).iterrows()]
    kinds = columns("op, source, what differs: sentence")
    return [Section("Where values begin to differ", kinds, rows, and_more(len(begins), count))] if rows else []


def _counted(left: Trace, right: Trace) -> Iterator[tuple[str, pd.DataFrame]]:
    ops = [_frame(trace, "ops") for trace in (left, right)]
    calls = compare_counts(ops[0], ops[1], CALLS)
    yield "Calls that differ", calls
    tensors = [_tensors(trace, own) for trace, own in zip((left, right), ops, strict=True)]
    shapes = compare_counts(tensors[0], tensors[1], TENSORS)
    # An op that is called more often has more tensors, too: said once.
    known = pd.MultiIndex.from_frame(calls[["model", "module", "phase", "op"]])
    is_known = pd.MultiIndex.from_frame(shapes[["model", "module", "phase", "op"]]).isin(known)
    yield "Shapes and dtypes that differ", shapes[~is_known]
    for title, name, keys in COUNTED:
        # Else the two verbs looked for other things; findings of opdiff are its verdicts.
        is_said = name == "findings" and any("diffs" in trace.frames for trace in (left, right))
        if name in left.frames and name in right.frames and not is_said:
            yield title, compare_counts(_judged(left, name), _judged(right, name), keys)


def _judged(trace: Trace, name: str) -> pd.DataFrame:
    """Returns a frame without findings about time: whether they are worth one differs from run to run."""
    frame = _frame(trace, name)
    return frame[frame["effect_us"].isna()] if name == "findings" else frame


def _frame(trace: Trace, name: str) -> pd.DataFrame:
    return trace.frames[name] if name in trace.frames else TABLES[name].frame()


def _tensors(trace: Trace, ops: pd.DataFrame) -> pd.DataFrame:
    """Returns the trace's tensors with the names of their ops."""
    return _frame(trace, "tensors").merge(ops[["op_id", "model", "module", "phase", "op"]], on="op_id")


def _count_rows(rows: pd.DataFrame) -> list[list[object]]:
    return [[_place(row), row["left_count"], row["right_count"]] for _, row in rows.iterrows()]


def _place(row: "pd.Series[str]") -> str:
    """Returns the names of a row on one line: what it is, then where."""
    what = [str(row[name]) for name in ("rule", "status", "op", "type", "role", "position") if _has(row, name)]
    what += [str(row[name]) for name in ("dtype", "shape") if _has(row, name)]
    what += [f"{row['params']:,} parameters"] if _has(row, "params") else []
    where = shown_module(row.get("model"), row["module"])
    return shown(f"{' '.join([*what, 'in', where]) if what else where}{_phase(row)}")


def _phase(row: "pd.Series[str]") -> str:
    return f", {row['phase']}" if _has(row, "phase") else ""


def _has(row: "pd.Series[str]", name: str) -> bool:
    return name in row and not pd.isna(row[name])
