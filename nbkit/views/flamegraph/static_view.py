"""Writes a flame graph as text and HTML for where it cannot be drawn live: of one trace, or of two."""

from collections.abc import Mapping
from html import escape

import pandas as pd

from nbkit import units
from nbkit.analysis.time.compare_times import compare_times
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.data import State
from nbkit.views.flamegraph.difference_svg import difference_html
from nbkit.views.flamegraph.svg import flame_svg
from nbkit.views.sections.section import Section, columns, module_names
from nbkit.views.sections.writers import to_html, to_text
from nbkit.views.static_html.static_table import nothing_html
from nbkit.views.static_html.style import facts_html, static_div
from nbkit.views.static_html.text import summary
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.facts import facts

CHANGES = 10
ACTIONS = {"left_only": "removed", "right_only": "added"}


def flame_text(trace: Trace, base: Trace | None) -> str:
    """Returns the summary of the trace; with `base` both titles and times, and the top rows of `compare_times`."""
    if base is None or not len(trace.ops):
        return summary(trace)
    times = compare_times(base, trace)
    notes = times.attrs.get("notes", [])
    return "\n".join([_headline(trace, base, times), *to_text([_changes(times)]), *([""] if notes else []), *notes])


def flame_html(trace: Trace) -> str:
    """Returns HTML without scripts: the facts, a static flame graph and tables of where the time went."""
    tables = (
        flame_svg(trace) + to_html(view_of(trace).sections(trace, CHANGES)) if len(trace.ops) else nothing_html(trace)
    )
    return _document(trace, tables)


def changes_html(trace: Trace, base: Trace, states: Mapping[str, State | None]) -> str:
    """Returns HTML without scripts: the facts, a static flame graph and a table of what changed against `base`."""
    if not len(trace.ops):
        return _document(trace, nothing_html(trace))
    times = compare_times(base, trace)
    words = [_headline(trace, base, times), *times.attrs.get("notes", [])]
    notes = "".join(f"<p>{escape(text)}</p>" for text in words)
    return _document(trace, notes + difference_html(states) + to_html([_changes(times)]))


def _document(trace: Trace, tables: str) -> str:
    return static_div(facts_html(facts(trace)) + tables)


def _headline(trace: Trace, base: Trace, times: pd.DataFrame) -> str:
    before, now = (units.duration(float(times[name].sum())) for name in ("left_us", "right_us"))
    return f"{facts(trace).title} compared with {facts(base).title}: {now} in all, was {before}"


def _changes(times: pd.DataFrame) -> Section:
    """Returns the top rows of a frame of TIME_DIFFS."""
    few = times.head(CHANGES)
    names = ("phase", "left_us", "right_us", "change_us", "noise_us", "action", "verdict")
    rows = [
        [*values, ACTIONS.get(action) or (verdict.replace("_", " ") if isinstance(verdict, str) else None)]
        for *values, action, verdict in zip(module_names(few), *(few[name] for name in names), strict=True)
    ]
    kinds = columns("module, phase: phase, before: time, now: time, change: change, noise: time, verdict")
    return Section("What changed, by module", kinds, rows)
