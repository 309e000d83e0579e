"""Draws the difference of two flame graphs as a static picture, in the colors and words of the widget."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from nbkit import units
from nbkit.views.flamegraph.boxes import placed_boxes
from nbkit.views.flamegraph.changes import change_mark, change_words, flame_changes, noise_note
from nbkit.views.flamegraph.data import State
from nbkit.views.flamegraph.svg import Position, box, box_label, position, svg

# The widget's colors of a difference, which color-blind eyes tell apart.
COLORS = {"same": "#868686", "slower": "#d97706", "faster": "#3b8cf6", "added": "#d94fa6", "removed": "#9d6bf2"}
SWATCH = "display:inline-block;width:.8em;height:.8em"


def difference_html(states: Mapping[str, State | None], count: int = 300) -> str:
    """Draws the widest boxes of a difference as SVG, colored by what changed, with a legend; empty without ops.

    `states` are those of `flame_states`. A box bears its change as a mark, as the widget's do.
    """
    now, base, difference = (states[name] for name in ("flame", "base", "difference"))
    assert now is not None and base is not None and difference is not None
    frames = flame_changes(now, base, difference)
    if not len(frames):
        return ""
    widths = frames["width_us"]
    widest = np.lexsort((np.arange(len(frames)), -widths))[:count]
    placed = placed_boxes(widest.tolist(), frames["parent"].tolist(), widths.tolist())
    boxes = frames.loc[list(placed)]
    whole_us = float(widths[frames["parent"] < 0].sum()) or 1.0
    is_judged = bool(difference["views"])
    drawn = "".join(
        _change_box(row, position(left_us, depth, width_us, whole_us), is_judged=is_judged)
        for row, width_us, (depth, left_us) in zip(boxes.itertuples(), boxes["width_us"], placed.values(), strict=True)
    )
    label = f"Difference of {units.duration(whole_us)}: the {units.counted(len(boxes), 'widest call path')}"
    legend = _legend(frames["kind"].tolist(), noise_note(difference), is_judged=is_judged)
    return legend + svg(label, max(depth for depth, _ in placed.values()) + 1, drawn)


def _change_box(row: Any, at: Position, *, is_judged: bool) -> str:
    """Draws one box of a difference from a row of `flame_changes`."""
    mark = change_mark(row.kind, row.usual_us, row.change_us, is_own=row.is_own)
    words = change_words(row.kind, row.usual_us, row.change_us, row.noise_us, is_own=row.is_own, is_judged=is_judged)
    label = f"{mark} {box_label(row.text, row.calls)}".strip()
    total = units.duration(row.width_us)
    title = f"removed, was {total}" if row.kind == "removed" else f"{total} total · {words}"
    return box(label, title, COLORS[row.kind], at)


def _legend(kinds: list[str], note: str, *, is_judged: bool) -> str:
    """Lists the colors, how many frames have each, and what they mean."""
    labels = {"same": "within noise" if is_judged else "no clear change"}
    counts = {kind: units.counted(kinds.count(kind), "frame") for kind in COLORS if kind in kinds}
    items = "".join(
        f'<span style="white-space:nowrap;margin-right:1em"><span aria-hidden="true" style="{SWATCH};'
        f'background:{color}"></span> {labels.get(kind, kind)} {counts[kind]}</span> '
        for kind, color in COLORS.items()
        if kind in counts
    )
    return f"<p>{items}{escape(note)}</p>"
