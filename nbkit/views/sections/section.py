"""Sections: the tables of a summary as texts, which its text and HTML twins both show."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from nbkit.analysis.time.times import computing_ops, self_totals
from nbkit.schema import OPS
from nbkit.trace.trace import Trace
from nbkit.views.summary.facts import facts, total_texts
from nbkit.views.summary.names import shown, shown_module

# Columns that name a module.
MODULE = ["model", "module"]


@dataclass(frozen=True)
class Section:
    """A table: its title, what its rows name, the labels of their figures, and per row the name and the figures."""

    title: str
    noun: str
    figures: Sequence[str]
    rows: Sequence[Sequence[str | None]]


def op_sections(trace: Trace, count: int) -> list[Section]:
    """Phases, slowest ops and slowest modules by self time; none for a trace without ops."""
    ops = computing_ops(trace.frames.get("ops", OPS.frame()))
    if not len(ops):
        return []
    kinds, modules = self_totals(ops, ["op"]).head(count), self_totals(ops, MODULE).head(count)
    phases = facts(trace).phases
    return [
        totals_section("Slowest ops", "op", [shown(name) for name in kinds["op"]], kinds),
        totals_section("Slowest modules", "module", module_names(modules), modules),
        totals_section("Phases", "phase", list(phases["phase"]), phases),
    ]


def totals_section(title: str, noun: str, names: Sequence[str], totals: pd.DataFrame) -> Section:
    """Calls, self time and share of the rows of a frame of `nbkit.analysis.time.times`."""
    rows = [[name, *texts] for name, texts in zip(names, total_texts(totals), strict=True)]
    return Section(title, noun, ("calls", "self time", "share"), rows)


def module_names(totals: pd.DataFrame) -> list[str]:
    """The module of each row for the eye, with its model where there are several."""
    has_models = totals["model"].nunique() > 1
    return [shown_module(*name, with_model=has_models) for name in zip(totals["model"], totals["module"], strict=True)]
