"""RANKS_VIEW is the view of a job: its ranks, what they spend their time in, and the op table over all of them."""

import json
from dataclasses import replace
from typing import Any

from nbkit import units
from nbkit.schema import FINDINGS
from nbkit.trace.job.job import Job
from nbkit.trace.job.ranks import named
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.panel import flame_panel
from nbkit.views.op_table.report_data import op_panel
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.plots.ranks import draw_ranks, has_modules
from nbkit.views.report.leaving import leaving
from nbkit.views.sections.section import Section, and_more, columns, module_names, rows_of
from nbkit.views.statements.ranks.said import rank_statements
from nbkit.views.statements.ranks.totals import MANY, RankTotals, rank_totals
from nbkit.views.static_html.view import View
from nbkit.views.summary.names import shown

MOST_IN_REPORT = 200_000  # ops of a rank that a report carries along


def rank_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the ranks, the slowest first, and the slowest ops and modules, with the rank that takes most of each."""
    if not isinstance(trace, Job):
        return []
    totals = rank_totals(trace)
    return [_ranks(trace, count), *(_totals(totals, count) if totals is not None else [])]


def _ranks(job: Job, count: int) -> Section:
    ranks = job.ranks
    order = ranks.assign(above_us=ranks["wall_us"] - ranks["wall_us"].median())
    order = order.sort_values(["wall_us", "rank"], ascending=[False, True], kind="stable")
    few = order.head(count).assign(state=lambda one: one["error"].where(one["error"].notna(), one["state"]))
    labels = "rank: id, wall time: time, to the median: change, ops: count, host, state"
    rows = rows_of(few, "rank, wall_us, above_us, rows, host, state")
    return Section("Ranks", columns(labels), rows, and_more(len(ranks), len(few)))


def _totals(totals: RankTotals, count: int) -> list[Section]:
    only = "" if totals.is_all else f"of {named(totals.ranks)} alone"
    ops, modules = (frame.head(count) for frame in (totals.ops, totals.modules))
    ops = ops.assign(name=[shown(str(name)) for name in ops["op"]])
    sections = [
        Section(
            "Slowest ops of the ranks",
            columns("op, calls: count, self time: time, share of all ops: fraction"),
            rows_of(ops, "name, calls, self_time_us, share"),
            only,
        )
    ]
    if len(modules):
        labels = "module, self time: time, median of ranks: time, slowest rank: id, its time: time"
        known = "name, self_time_us, median_us, slowest_rank, slowest_us"
        named_modules = modules.assign(name=module_names(modules))
        sections.append(Section("Slowest modules of the ranks", columns(labels), rows_of(named_modules, known), only))
    return sections


def _widget(trace: Trace) -> Any:
    from nbkit.views.widgets import ranks_and_ops

    return ranks_and_ops(trace, rank_sections)


def straggler_of(job: Job) -> int | None:
    """Returns the rank that the finding straggler names first; None where none is named."""
    findings = job.frames.get("findings", FINDINGS.frame([]))
    named_first = findings.loc[findings["rule"] == "straggler", "evidence"].head(1)
    return next((int(json.loads(evidence)["rank"]) for evidence in named_first), None)


def _charts(trace: Trace) -> list[Any]:
    """Returns the heat map of modules by rank, of a job that is summed unasked."""
    is_drawn = isinstance(trace, Job) and has_modules(trace) and trace.counts.get("ops", 0) <= MANY
    return [draw_ranks(trace)] if is_drawn else []


def _panels(contents: Contents) -> list[Panel]:
    """Returns flame graph and op table of the straggler, else of the slowest rank, as far as a page can carry them."""
    job = contents.trace
    if not isinstance(job, Job) or not job.first_rows:
        return []
    straggler = straggler_of(job)
    number, what = (job.slowest, "the slowest") if straggler is None else (straggler, "the straggler")
    rows = next(one.rows["ops"] for one in job.known if one.rank == number)
    if rows > MOST_IN_REPORT:
        return []
    drawn = replace(contents, trace=leaving(job.rank(number), values=contents.values), base=None)
    of = f"of rank {number}, {what} ({units.counted(rows, 'op')})"
    return [
        replace(flame_panel(drawn), title=f"Flame graph {of}"),
        replace(op_panel(drawn), title=f"Ops {of}"),
    ]


RANKS_VIEW = View(
    widget=_widget,
    sections=rank_sections,
    charts=_charts,
    calls=lambda trace, count: "",
    panels=_panels,
    totals=rank_sections,
    shows="ranks",
    nothing="No rank was found.",
    statements=lambda trace: rank_statements(trace) or [],
)
