"""The tables of an opdiff trace: where two runs diverge and what led there, verdicts, the worst differences first."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from nbkit.analysis.query import diff_table
from nbkit.analysis.values.producers import producers
from nbkit.numerics.noise_ratio import STATUSES
from nbkit.schema import DIFFS
from nbkit.trace.trace import Trace
from nbkit.units import general
from nbkit.views.sections.section import AtMost, Section, columns
from nbkit.views.summary.names import shown, shown_module

CLASSES = ("local", "input", "both", "propagated", "clean")
MILESTONES = {
    "first_divergence": "first op at fault",
    "half_precision_lost_at": "half of the digits lost",
    "largest_growth": "largest growth",
    "largest_error": "largest error",
}
MILESTONE = columns("what, op, phase: phase, module, source, what happened: sentence")


def diff_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the tables of where two runs diverge, of verdicts, and of the worst noise ratios; none without diffs."""
    verdicts = verdict_sections(trace, count)
    return [*verdicts, worst_section(trace, count)] if verdicts else []


def verdict_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the tables of where two runs diverge and of verdicts; none without diffs."""
    diffs = trace.frames.get("diffs", DIFFS.frame())
    if not len(diffs):
        return []
    verdicts = Section("Verdicts", columns("verdict, tensors: count"), verdict_counts(diffs))
    return [*divergence_sections(trace), verdicts]


def worst_section(trace: Trace, count: int) -> Section:
    """Returns the worst differences by verdict and noise ratio."""
    worst = [_values(row) for _, row in worst_first(trace.diffs).head(count).iterrows()]
    kinds = columns("op, verdict, noise ratio: ratio, max abs error: number, max rel error: number")
    return Section("Worst differences", kinds, worst)


def worst_first(diffs: pd.DataFrame) -> pd.DataFrame:
    """Returns rows by verdict, then by noise ratio, largest first; ties keep call order."""
    return diffs.iloc[diff_table.worst_first(diffs)]


def verdict_counts(diffs: pd.DataFrame) -> list[tuple[str, int]]:
    """Returns the number of rows by verdict, from the worst on; one that we do not know comes first."""
    counts = diffs["status"].value_counts()
    ranks = {status: rank for rank, status in enumerate(STATUSES)}
    ordered = sorted(counts.index, key=lambda status: ranks.get(status, -1))
    return [(str(status), int(counts[status])) for status in ordered]


def _values(row: pd.Series) -> list[object]:
    module = f" in {shown(row['module'])}" if isinstance(row["module"], str) and row["module"] else ""
    # Below the threshold opdiff stops as soon as it knows that the error is within rounding.
    ratio = AtMost(row["noise_ratio"]) if row["status"] == "ok" and row["noise_ratio"] > 0 else row["noise_ratio"]
    return [f"{row['op']}{module}", row["status"], ratio, row["max_abs_error"], row["max_rel_error"]]


def divergence_sections(trace: Trace) -> list[Section]:
    """Returns where the runs diverge, what led there, and counts of error classes; none without another run."""
    if "first_divergence" not in trace.meta:
        return []
    title = f"Where the step and {shown(str(trace.meta.get('against')))} diverge"
    points = [(name, trace.meta.get(name)) for name in MILESTONES]
    rows = [_row(name, point) for name, point in points if point or name == "first_divergence"]
    return [Section(title, MILESTONE, rows), *_chain(trace), *_classes(trace)]


def _row(name: str, point: Mapping[str, Any] | None) -> list[object]:
    if point is None:
        return [MILESTONES[name], None, None, None, None, "no op adds more than its dtype and conditioning allow"]
    module = shown_module(None, point["module"])
    return [MILESTONES[name], point["op"], point["phase"], module, point["source"], WORDING[name](point)]


def _fault(point: Mapping[str, Any]) -> str:
    figures = [("local error", "local_error"), ("propagated error", "propagated_error"), ("noise ratio", "noise_ratio")]
    parts = [f"{label} {general(point[name], 3)}" for label, name in figures if point.get(name) is not None]
    return "; ".join([*parts, *([shown(point["message"])] if point["message"] else [])])


def _total(point: Mapping[str, Any]) -> str:
    return f"total error {general(point['total_error'], 3)}"


WORDING: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "first_divergence": _fault,
    "half_precision_lost_at": lambda point: f"{_total(point)}, above {general(point['level'], 3)}",
    "largest_growth": lambda point: f"{_total(point)}, of its inputs {general(point['before'], 3)}",
    "largest_error": _total,
}


def _chain(trace: Trace) -> list[Section]:
    first = trace.meta["first_divergence"]
    if first is None or first["op_id"] is None:
        return []
    before = producers(trace, int(first["op_id"]))
    title, errors = _errors(trace)
    rows = before[["op", "distance", "phase", "module", "source"]].to_numpy(object).tolist()
    values = [[*row, errors.get(op_id)] for row, op_id in zip(rows, before["op_id"], strict=True)]
    kinds = columns(f"op, ops before: count, phase: phase, module, source, {title}: number")
    return [Section("What led to the first op at fault", kinds, values)] if values else []


def _errors(trace: Trace) -> tuple[str, pd.Series]:
    """Returns the name of the error between both runs, and that error at each op."""
    if "alignment" in trace.frames:
        matched = trace.frames["alignment"].dropna(subset="left_id")
        return "difference", matched.set_index(matched["left_id"].astype("int64"))["output_error"]
    return "total error", trace.frames["diffs"].groupby("op_id")["total_error"].max()


def _classes(trace: Trace) -> list[Section]:
    name, what = ("alignment", "ops") if "alignment" in trace.frames else ("diffs", "tensors")
    counts = trace.frames[name]["error_class"].value_counts()
    rows = [[label, int(counts[label])] for label in CLASSES if label in counts]
    return [Section(f"Errors of {what}", columns(f"class, {what}: count"), rows)] if rows else []
