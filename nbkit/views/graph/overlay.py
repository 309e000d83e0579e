"""Prepares what `color_by` joined to a graph for its view: numbers or texts of nodes and parts, and a caption."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from nbkit.schema import OVERLAY, TEXT
from nbkit.trace.trace import Trace
from nbkit.views.graph.values import Floats, Value
from nbkit.views.summary.names import shown

NAME, ROWS = "overlay", "overlay_rows"
# What numbers are by the end of their column's name, and what makes those of the view of them.
FORMATS = {
    "_ns": ("duration", 1e-3),
    "_us": ("duration", 1.0),
    "_ms": ("duration", 1e3),
    "_s": ("duration", 1e6),
    "_bytes": ("data_size", 1.0),
    "flops": ("flops", 1.0),
    "_fraction": ("share", 1.0),
    "ratio": ("ratio", 1.0),
    "_count": ("count", 1.0),
    "params": ("count", 1.0),
    "calls": ("count", 1.0),
    "numel": ("count", 1.0),
}
HOW = {"sum": "sum of all in a box", "max": "largest in a box", "min": "smallest in a box", "mean": "mean in a box"}


@dataclass(frozen=True)
class Overlay:
    """Holds the columns that color nodes and parts, by name; `value` is null where they are texts.

    `looks` has hue and pattern of categories whose colors say something; the others get one in turn.
    """

    label: str
    caption: str
    is_inclusive: bool
    value: Value | None
    sides: list[dict[str, Any] | None] | None
    numbers: dict[str, dict[str, Floats]] = field(default_factory=dict)
    texts: dict[str, pd.Series] = field(default_factory=dict)
    looks: Mapping[str, Any] = field(default_factory=dict)

    def outline(self) -> dict[str, Any]:
        looks = {"label": self.label, "caption": self.caption, "isInclusive": self.is_inclusive}
        more = {"looks": self.looks, "sides": self.sides}
        return {**looks, **{name: value for name, value in more.items() if value}}


def overlay_in(trace: Trace) -> Overlay | None:
    """Returns what colors the graph of a trace; None if nothing does."""
    rows, made = trace.frames.get(NAME), trace.meta.get(NAME)
    if rows is None or not len(rows) or not isinstance(made, dict):
        return None
    rows, label = OVERLAY.check(rows), shown(str(made.get("column")))
    sides = _sides(made, label)
    captions = [_caption(made, label)] if sides is None else [side["caption"] for side in sides if side]
    looks = [made] if sides is None else [side for side in made["sides"] if side]
    caption, is_inclusive = " · ".join(dict.fromkeys(captions)), all(look.get("is_inclusive") for look in looks)
    lengths = {name: len(trace.frames.get(name, ())) for name in ("nodes", "parts")}
    if rows["category"].notna().any():
        texts = {name: _spread(rows, name, "category", length) for name, length in lengths.items()}
        known = {name: of.astype(TEXT) for name, of in texts.items()}
        return Overlay(label, caption, is_inclusive, None, sides, texts=known, looks=made.get("looks") or {})
    kind, factor = _format(label)
    value = Value(label, kind, str(made.get("how")), is_inclusive, True, 1.0 if label == "ratio" else None)
    numbers = {
        name: {
            NAME: _spread(rows, name, "value", length).to_numpy(np.float64, na_value=np.nan) * factor,
            ROWS: _spread(rows, name, "rows", length).to_numpy(np.float64, na_value=np.nan),
        }
        for name, length in lengths.items()
    }
    return Overlay(label, caption, is_inclusive, value, sides, numbers=numbers)


def _spread(rows: pd.DataFrame, name: str, column: str, length: int) -> pd.Series:
    """Returns a column of the overlay for each row of nodes or parts."""
    mine = rows.dropna(subset=[f"{name.removesuffix('s')}_id"]).set_index(f"{name.removesuffix('s')}_id")[column]
    return mine.reindex(range(length))


def _format(column: str) -> tuple[str, float]:
    return next((known for end, known in FORMATS.items() if column.endswith(end)), ("number", 1.0))


def _sides(made: dict[str, Any], label: str) -> list[dict[str, Any] | None] | None:
    """Returns the caption of either side of a comparison, null for a plain one; None for a graph alone."""
    sides = made.get("sides")
    if not isinstance(sides, list):
        return None
    scale = "one scale for both sides" if made.get("how") and all(sides) else ""
    return [
        side and {"caption": _caption(side, label, scale), "isInclusive": bool(side.get("is_inclusive"))}
        for side in sides
    ]


def _caption(made: dict[str, Any], label: str, scale: str = "") -> str:
    if made.get("caption"):
        return shown(str(made["caption"]))
    own = "of each module itself" if made.get("is_inclusive") else HOW.get(str(made.get("how")), "")
    what = {"module": "modules", "node_id": "nodes"}.get(str(made.get("by")), "ops")
    missing = made.get("joined") != made.get("of")
    few = f"{made.get('joined'):,} of {made.get('of'):,} {what} of the frame are here" if missing else ""
    return "; ".join(filter(None, [f"{label}: {own}" if own else label, scale, few]))
