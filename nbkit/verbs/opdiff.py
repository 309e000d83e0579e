"""opdiff runs every op again on a reference. Its trace is shown with the verdicts above what optrace shows."""

from dataclasses import replace
from typing import Any

from nbkit.numerics.noise_ratio import THRESHOLD
from nbkit.trace.trace import Trace
from nbkit.verbs.options.generated import Option
from nbkit.verbs.verb import ABOUT_PATTERNS, Recorder, Verb, nothing_in
from nbkit.views.diff_table.panel import diff_panel
from nbkit.views.op_table.report_data import op_panel
from nbkit.views.ops_view import OPS_VIEW, op_charts, widget_named
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.plots.difference import worst_difference
from nbkit.views.plots.errors import errors_picture
from nbkit.views.plots.picture.static import static_pictures
from nbkit.views.sections.diff import diff_sections, verdict_sections
from nbkit.views.sections.section import Section, op_sections


def _sections(trace: Trace, count: int) -> list[Section]:
    return [*diff_sections(trace, count), *op_sections(trace, count)]


def _charts(trace: Trace) -> list[Any]:
    return [*static_pictures(trace, errors_picture), *worst_difference(trace), *op_charts(trace)]


def _panels(contents: Contents) -> list[Panel]:
    differences = [diff_panel(contents)] if len(contents.trace.frames.get("diffs", ())) else []
    return [*differences, op_panel(contents)]


OPDIFF = Verb(
    "opdiff",
    view=replace(
        OPS_VIEW,
        widget=widget_named("differences_and_ops"),
        sections=_sections,
        charts=_charts,
        outcome=verdict_sections,
        panels=_panels,
    ),
    recorder=Recorder(
        home="nbkit.capture.diff.opdiff:opdiff",
        summary="run every op again on a reference, judge what differs",
        description="Run every op of this cell again on a reference from the same inputs, forward and backward, and "
        "judge what differs.",
        notes="The frame `diffs` has a row per compared tensor. A difference is an error if it is larger than the op's "
        f"conditioning and dtype allow.\n\n{ABOUT_PATTERNS}",
        special={
            "reference": Option(help="cpu (float64; the default), cpu:float32, or a device such as cuda:float64"),
            "sample": Option(help="compare every N-th call of an op; below 1, about that share (default: 1)"),
            "max_bytes": Option(help="skip ops whose inputs take more than N bytes on the reference"),
            "threshold": Option(help=f"noise ratio above which a difference is an error (default: {THRESHOLD:g})"),
            "keep": Option(help="capture the values of the first N wrong calls (default: 8)"),
            "keep_bytes": Option(help="capture N bytes of values at most (default: 64 MiB)"),
            "keep_ops": Option(help="also capture correct calls of ops that fit"),
            "level": Option(help="op (default), or module: compare each module's call as a whole"),
            "against": Option(
                help="also compare the whole step with a reference run: cpu:float64, cpu:float32, cpu:same, another "
                "device, or the folder of a trace with value statistics"
            ),
        },
        nothing=nothing_in(
            "diffs",
            why="No op was compared: the filters, phases or the kind of the ops left none; see trace.meta['skipped'].",
        ),
    ),
)
