"""Sections of an opdiff trace with another run: where the two diverge, and what led there."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from nbkit.analysis.values.producers import producers
from nbkit.trace.trace import Trace
from nbkit.units import general
from nbkit.views.sections.section import Column, Section, columns
from nbkit.views.summary.names import shown, shown_module

CLASSES = ("local", "input", "both", "propagated", "clean")
MILESTONES = {
    "first_divergence": "first op at fault",
    "half_precision_lost_at": "half of the digits lost",
    "largest_growth": "largest growth",
    "largest_error": "largest error",
}
MILESTONE = (
    *columns("what, op"),
    Column("phase", "phase"),
    *columns("module, source"),
    Column("what happened", "sentence"),
)
PRODUCER = (Column("op"), Column("ops before", "count"), Column("phase", "phase"), *columns("module, source"))


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


def _lost(point: Mapping[str, Any]) -> str:
    return f"total error {general(point['total_error'], 3)}, above {general(point['level'], 3)}"


def _grown(point: Mapping[str, Any]) -> str:
    return f"total error {general(point['total_error'], 3)}, of its inputs {general(point['before'], 3)}"


def _largest(point: Mapping[str, Any]) -> str:
    return f"total error {general(point['total_error'], 3)}"


WORDING: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "first_divergence": _fault,
    "half_precision_lost_at": _lost,
    "largest_growth": _grown,
    "largest_error": _largest,
}


def _chain(trace: Trace) -> list[Section]:
    first = trace.meta["first_divergence"]
    if first is None or first["op_id"] is None:
        return []
    before = producers(trace, int(first["op_id"]))
    title, errors = _errors(trace)
    rows = before[["op", "distance", "phase", "module", "source"]].to_numpy(object).tolist()
    values = [[*row, errors.get(op_id)] for row, op_id in zip(rows, before["op_id"], strict=True)]
    kinds = (*PRODUCER, Column(title, "number"))
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
    return [Section(f"Errors of {what}", (Column("class"), Column(what, "count")), rows)] if rows else []
