"""Draws where the time of a step went: its phases as one bar, its slowest modules as bars of one scale."""

from html import escape
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.analysis.time.times import computing_ops, host_ops, slowest_groups
from nbkit.schema import TIMINGS
from nbkit.trace.trace import Trace
from nbkit.views.report.chapter import Chapter
from nbkit.views.sections.section import MODULE, module_names
from nbkit.views.statements.statement import op_link, words_html
from nbkit.views.summary.counting import is_timeline, phases_us
from nbkit.views.summary.facts import PHASE_COLORS
from nbkit.views.summary.names import OUTSIDE, shown

SLOWEST = 6
SLOWEST_MODULES = "Slowest modules, self time"
NOT_TIMED = "Step time not measured: record the step with nbkit.optime."


def step_time(trace: Trace) -> tuple[str, str]:
    """Returns the time of one step and how it was measured; without a measurement an empty text and what to do."""
    whole = trace.meta.get("step")
    if isinstance(whole, dict) and "time_us" in whole:  # of opdoctor, whose timings are those of the ops
        runs = units.counted(int(whole["runs"] or 1), "run")
        at_most = "" if whole["runs"] else "at most "
        return f"{at_most}{units.duration(whole['time_us'])}", f"per step, of {runs}"
    if is_timed(trace) and len(TIMINGS.check(trace.timings)):
        step = trace.timings.iloc[0]
        median, spread, least = (units.duration(step[name]) for name in ("median_us", "iqr_us", "min_us"))
        runs = units.counted(int(step["repeats"]), "run")
        return median, f"per step, the median of {runs} (IQR {spread}, min {least})"
    if is_timeline(trace.ops):
        ops = host_ops(trace.ops)
        whole_us = float((ops["start_us"] + ops["total_time_us"]).max() - ops["start_us"].min())
        return units.duration(whole_us), "a single run; how far runs differ is not known"
    return "", NOT_TIMED


def is_timed(trace: Trace) -> bool:
    """Tells whether a trace has the times of a step; those of opreplay are of single calls, each by itself."""
    return "timings" in trace.frames and "replayed" not in trace.frames


def times_html(chapter: Chapter) -> str:
    """Writes the phases and the slowest modules of a trace, or its slowest ops where no module ran."""
    trace = chapter.contents.trace
    ops = trace.ops if is_timeline(trace.ops) else computing_ops(trace.ops)
    by_phase = phases_us(trace)
    whole_us = float(sum(by_phase.values()))
    if not whole_us:
        return ""
    if known := (trace.meta.get("step") or {}).get("slowest_modules"):
        groups = _of_timed_runs(known, ops)
        slowest = _bars(groups, module_names(groups), SLOWEST_MODULES, whole_us, chapter.anchor, is_timed=True)
    else:
        slowest = _slowest(ops, whole_us, chapter.anchor, is_whole="step" not in trace.meta)
    return f"<h3>Phases</h3>{_phases(by_phase, whole_us)}{slowest}"


def _phases(by_phase: dict[str, float], whole_us: float) -> str:
    rows = [(phase, time_us / whole_us) for phase, time_us in by_phase.items()]
    colors = [PHASE_COLORS.get(phase, PHASE_COLORS["other"]) for phase, _ in rows]
    parts = "".join(
        f'<span style="width:{share * 100:.2f}%;background:{color}"></span>'
        for (_, share), color in zip(rows, colors, strict=True)
    )
    keys = "".join(
        f'<li><span style="background:{color}"></span>{escape(shown(phase))} {units.share(share)}</li>'
        for (phase, share), color in zip(rows, colors, strict=True)
    )
    return f'<div class="nbkit-phases" aria-hidden="true">{parts}</div><ul class="nbkit-phase-keys">{keys}</ul>'


def _slowest(ops: pd.DataFrame, whole_us: float, anchor: str, *, is_whole: bool) -> str:
    modules = ops.dropna(subset="module").reset_index(drop=True)
    by = MODULE if len(modules) else ["op"]
    groups = slowest_groups(modules if len(modules) else computing_ops(ops), by, SLOWEST)
    names = module_names(groups) if len(modules) else [shown(name) for name in groups["op"]]
    title = SLOWEST_MODULES if len(modules) else "Slowest ops, self time"
    outside_us = whole_us - float(host_ops(modules)["self_time_us"].sum())
    is_outside_known = len(modules) and is_whole  # else Python's time in modules is nowhere
    # Times of a recorder that works in between are none of the step's; their shares say where to look all the same.
    is_timed = is_timeline(ops)
    return _bars(groups, names, title, whole_us, anchor, outside_us if is_outside_known else 0.0, is_timed=is_timed)


def _of_timed_runs(known: list[list[Any]], ops: pd.DataFrame) -> pd.DataFrame:
    """Returns modules as they were timed, and of each the slowest op that was recorded in it."""
    timed = pd.DataFrame(known, columns=[*MODULE, "self_time_us"])
    recorded = slowest_groups(ops.dropna(subset="module").reset_index(drop=True), MODULE, len(ops))
    return timed.merge(recorded[[*MODULE, "op_id"]], on=MODULE, how="left")


def _bars(
    groups: pd.DataFrame,
    names: list[str],
    title: str,
    whole_us: float,
    anchor: str,
    outside_us: float = 0.0,
    *,
    is_timed: bool,
) -> str:
    op_ids = groups["op_id"].astype("Int64")
    links = [
        escape(name) if pd.isna(op_id) else words_html((op_link(name, int(op_id)),), anchor)
        for name, op_id in zip(names, op_ids, strict=True)
    ]
    rows = [_bar(*pair, whole_us, is_timed) for pair in zip(links, groups["self_time_us"].tolist(), strict=True)]
    if outside_us > 0:
        rows.append(_bar(OUTSIDE, outside_us, whole_us, is_timed))
    return f'<h3>{title}</h3><ol class="nbkit-bars">{"".join(rows)}</ol>'


def _bar(name_html: str, time_us: float, whole_us: float, is_timed: bool) -> str:
    share, time = time_us / whole_us, f"{units.duration(time_us)}, " if is_timed else ""
    return (
        f'<li><span>{name_html}</span><span class="nbkit-bar" aria-hidden="true">'
        f'<span style="width:{share * 100:.2f}%"></span></span><span>{time}{units.share(share)}</span></li>'
    )
