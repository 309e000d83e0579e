"""opdiff: run every op again on a reference. Its trace is shown with the verdicts above what optrace shows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.verbs.options.generated import Option
from nbkit.verbs.verb import Recorder, Verb, why_empty
from nbkit.views.diff_table.panel import diff_panel
from nbkit.views.op_table.panel import op_panel
from nbkit.views.ops_view import OPS_VIEW, op_charts
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.plots.difference import worst_difference
from nbkit.views.sections.diff import diff_sections, verdict_sections
from nbkit.views.sections.section import Section, op_sections
from nbkit.views.statements.verdict import difference_verdict


def _function() -> Callable[..., Any]:
    from nbkit.capture.diff.opdiff import opdiff

    return opdiff


def _widget(trace: Trace) -> Any:
    from nbkit.views.widgets import differences_and_ops

    return differences_and_ops(trace)


def _sections(trace: Trace, count: int) -> list[Section]:
    return [*diff_sections(trace, count), *op_sections(trace, count)]


def _charts(trace: Trace) -> list[Any]:
    return [*worst_difference(trace), *op_charts(trace)]


def _panels(contents: Contents) -> list[Panel]:
    differences = [diff_panel(contents)] if len(contents.trace.frames.get("diffs", ())) else []
    return [*differences, op_panel(contents)]


def _nothing(trace: Trace) -> str | None:
    if len(trace.diffs):
        return None
    if len(trace.ops) or trace.meta.get("filtered_ops"):
        return "No op was compared: the filters, phases or the kind of the ops left none; see trace.meta['skipped']."
    return why_empty(trace)


OPDIFF = Verb(
    "opdiff",
    view=replace(
        OPS_VIEW,
        widget=_widget,
        sections=_sections,
        charts=_charts,
        verdict=difference_verdict,
        outcome=verdict_sections,
        panels=_panels,
    ),
    recorder=Recorder(
        function=_function,
        summary="run every op again on a reference, judge what differs",
        description="Run every op of this cell again on a reference from the same inputs, forward and backward, and "
        "judge what differs.",
        notes="The frame `diffs` has a row per compared tensor. A difference is an error if it is larger than the op's "
        "conditioning and dtype allow. A PATTERN is a plain name, a glob (aten.add*) or re: and a regular expression; "
        "several are separated by commas or given by repeating the option.",
        special={
            "reference": Option(help="cpu (float64; the default), cpu:float32, or another device such as cuda:float64"),
            "against": Option(
                help="the reference run to follow beside it: cpu:float64, cpu:float32, cpu:same, another device, or "
                "the folder of a trace saved with value statistics; says of each error whether its op made it or its "
                "inputs brought it, and where the runs diverge"
            ),
        },
        nothing=_nothing,
        findings=lambda trace: int(trace.meta.get("mismatches", 0)),
    ),
)
