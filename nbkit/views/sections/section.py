"""Section: one table of a summary, with raw values; `writers` makes text, HTML and a widget of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.analysis.time.times import computing_ops, self_totals
from nbkit.schema import OPS
from nbkit.trace.trace import Trace
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown, shown_module


@dataclass(frozen=True)
class AtMost:
    """A number of which no more is known than that it is no larger."""

    value: float


# How a value of each kind reads. Names may be cut in the middle where room is short, sentences only be wrapped.
FORMATS: dict[str, Callable[[Any], str]] = {
    "text": lambda value: shown(str(value)),
    "sentence": lambda value: shown(str(value), 500),
    "phase": lambda value: shown(str(value)),
    "id": lambda value: str(int(value)),
    "count": units.count,
    "time": units.duration,
    "change": units.change,
    "bytes": units.data_size,
    "flops": units.flops,
    "fraction": units.share,
    "number": lambda value: units.general(value, 3),
    "ratio": lambda value: (
        f"≤ {units.general(value.value, 3)}" if isinstance(value, AtMost) else units.general(value, 3)
    ),
}
WORDS = ("text", "sentence", "phase")
# Columns that name a module.
MODULE = ["model", "module"]


@dataclass(frozen=True)
class Column:
    """The label of a column and the kind of its values, a name in FORMATS: counts, times in us, bytes, 0..1 ..."""

    label: str
    kind: str = "text"

    @property
    def is_words(self) -> bool:
        """Tells whether the values are read from the left; numbers stand to the right."""
        return self.kind in WORDS

    def text(self, value: object) -> str | None:
        """Formats a value; None where it is missing or an empty text."""
        return None if units.is_null(value) or value == "" else FORMATS[self.kind](value)


@dataclass(frozen=True)
class Section:
    """A table: its title, its columns, and rows of raw values, None where unknown. `caption` stands below the rows."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def texts(self) -> list[list[str | None]]:
        """Formats the rows, None for what is missing."""
        return [[column.text(value) for column, value in zip(self.columns, row, strict=True)] for row in self.rows]


def columns(labels: str, kind: str = "text") -> list[Column]:
    """Makes columns from labels with commas between them, each of the kind behind it, such as 'calls: count'."""
    return [Column(*label.split(": ")) if ": " in label else Column(label, kind) for label in labels.split(", ")]


def rows_of(frame: pd.DataFrame, names: str) -> list[list[object]]:
    """Returns the rows of a frame with the columns of these names, which have commas between them."""
    return [list(row) for row in frame[names.split(", ")].itertuples(index=False, name=None)]


def and_more(whole: int, count: int) -> str:
    """Returns the caption of a table that shows `count` of `whole` rows; empty where it shows all."""
    return f"and {units.count(whole - count)} more" if whole > count else ""


def op_sections(trace: Trace, count: int) -> list[Section]:
    """Returns phases, slowest ops and slowest modules by self time; none for a trace without ops."""
    ops = computing_ops(trace.frames.get("ops", OPS.frame()))
    if not len(ops):
        return []
    kinds, modules = self_totals(ops, ["op"]).head(count), self_totals(ops, MODULE).head(count)
    phases = facts(trace).phases
    return [
        totals_section("Slowest ops", "op", kinds["op"].tolist(), kinds),
        totals_section("Slowest modules", "module", module_names(modules), modules),
        totals_section("Phases", "phase: phase", phases["phase"].tolist(), phases),
    ]


def totals_section(
    title: str, noun: str, names: Sequence[str], totals: pd.DataFrame, *, with_device: bool = False
) -> Section:
    """Returns calls, self time and share of the rows of a frame of `nbkit.analysis.time.times`."""
    labels = f"{noun}, calls: count, self time: time, share: fraction"
    known = "name, calls, self_time_us, self_fraction"
    if with_device:
        labels, known = f"{labels}, device time: time", f"{known}, self_device_time_us"
    return Section(title, columns(labels), rows_of(totals.assign(name=names), known))


def module_names(totals: pd.DataFrame) -> list[str]:
    """Returns the module of each row as shown, with its model where there are several."""
    has_models = totals["model"].nunique() > 1
    return [shown_module(*name, with_model=has_models) for name in zip(totals["model"], totals["module"], strict=True)]
