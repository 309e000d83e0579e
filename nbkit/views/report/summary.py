"""Writes what a report says of a trace in words, from its frames and meta; what is not known is left out."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.analysis.time.compare_times import compare_times
from nbkit.analysis.time.times import computing_ops, slowest_groups
from nbkit.trace.trace import Trace
from nbkit.views.sections.difference import is_different
from nbkit.views.sections.section import MODULE, module_names
from nbkit.views.statements.peaks import peak_words
from nbkit.views.statements.statement import Link, Statement, Words, op_link
from nbkit.views.statements.subjects import SUBJECTS
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.counting import phases_us
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown

SLOWEST = 3
LARGEST = 3


def summary_statements(trace: Trace, base: Trace | None = None) -> list[Statement]:
    """Returns the statements of a trace with rows, most asked first; with `base` what changed since that."""
    of_verb = view_of(trace).statements
    statements = [
        *(one for of in SUBJECTS if of.in_report and of.is_of(trace) for one in of.told(trace) or ()),
        *(of_verb(trace) if of_verb else _of_ops(trace, base)),
        _left_out(trace),
        *_cost(trace.meta),
        *_recorded(trace.meta),
    ]
    return [statement for statement in statements if statement.sentences]


def _of_ops(trace: Trace, base: Trace | None) -> list[Statement]:
    return [
        _what_ran(trace),
        *([] if base is None else [changes(trace, base)]),
        Statement("Where the time went", (_time(trace),)),
        *([Statement("Memory at its peak", peak)] if (peak := tuple(peak_words(trace))) else []),
    ]


def _what_ran(trace: Trace) -> Statement:
    computing = computing_ops(trace.ops)
    phases = computing["phase"].value_counts(sort=False)
    counted = ", ".join(f"{shown(str(phase))} {units.count(number)}" for phase, number in phases.items())
    models = [shown(str(model)) for model in trace.ops["model"].dropna().unique()]
    modules = len(trace.ops[MODULE].dropna().drop_duplicates())
    inside = f" in {units.counted(modules, 'module')} of {', '.join(models)}" if models else ""
    devices = ", ".join(map(str, trace.meta.get("devices") or []))
    where = f", on {shown(devices)}" if devices else ""
    return Statement("What ran", ((f"{units.counted(len(computing), 'op')}{inside}{where}: {counted}.",),))


def _time(trace: Trace) -> Words:
    whole_us = sum(phases_us(trace).values()) or 1.0
    return _slowest("Ops", slowest_groups(computing_ops(trace.ops), ["op"], SLOWEST), whole_us)


def _slowest(title: str, groups: pd.DataFrame, whole_us: float) -> Words:
    names = [shown(name) for name in groups["op"]]
    words: list[str | Link] = []
    for name, op_id, time_us in zip(names, groups["op_id"], groups["self_time_us"], strict=True):
        words += [*([", "] if words else []), op_link(name, int(op_id)), f" {units.share(time_us / whole_us)}"]
    return (f"{title} with most self time: ", *words, ".")


def _left_out(trace: Trace) -> Statement:
    notes = facts(trace).notes
    return Statement("Left out", tuple((note,) for note in notes) or (("Nothing was skipped.",),))


def _cost(meta: Mapping[str, Any]) -> Iterator[Statement]:
    recorder_us, wall_us = meta.get("recorder_us"), meta.get("wall_us")
    if recorder_us is None:
        return
    part = f" of {units.duration(wall_us)} ({units.share(recorder_us / wall_us)})" if wall_us else ""
    recorder = f", with the {shown(str(meta['recorder']))} recorder" if meta.get("recorder") else ""
    yield Statement("Overhead of recording", ((f"About {units.duration(recorder_us)}{part}{recorder}.",),))


def _recorded(meta: Mapping[str, Any]) -> Iterator[Statement]:
    versions = ", ".join(f"{name} {version}" for name, version in (meta.get("versions") or {}).items())
    parts = [shown(text) for text in (str(meta.get("created") or ""), versions) if text]
    if parts:
        yield Statement("Recorded", ((f"{' with '.join(parts)}.",),))


def changes(trace: Trace, base: Trace) -> Statement:
    """Returns the whole time of both, and the modules that changed most, if any did by more than noise."""
    times = compare_times(base, trace)
    before, now = (units.duration(float(times[name].sum())) for name in ("left_us", "right_us"))
    whole: Words = (f"{now} in all, {before} in {facts(base).title}.",)
    differs = times[is_different(times)]
    if len(differs):
        return Statement(
            "What changed", (whole, ("Most by itself: ", ", ".join(_largest(differs)), ".")), is_first=True
        )
    is_judged = bool(times["verdict"].notna().any())
    nothing = "No module changed beyond noise." if is_judged else "Whether that is more than noise is not known."
    return Statement("What changed", (whole, (nothing,)), is_first=True)


def _largest(differs: pd.DataFrame) -> list[str]:
    order = differs["change_us"].abs().sort_values(ascending=False, kind="stable").index
    most = differs.loc[order[:LARGEST]]
    rows = zip(module_names(most), most["phase"], most["change_us"], strict=True)
    return [f"{name} ({shown(str(phase))}) {units.change(change_us)}" for name, phase, change_us in rows]
