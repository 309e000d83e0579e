"""The static twin of the op table: one piece of HTML without scripts that survives where no widget can."""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import pandas as pd

from nbkit.analysis.encoded import encode
from nbkit.analysis.slowest import by_module, by_op, computing_ops
from nbkit.schema import TENSORS
from nbkit.trace import Trace
from nbkit.views import units
from nbkit.views.facts import PHASE_COLORS, Facts, facts, total_texts
from nbkit.views.names import shown, shown_module
from nbkit.views.op_rows import cell

COLUMNS = {"op_id": "#", "op": "op", "self_time_us": "self time", "module": "module", "phase": "phase",
           "output": "output", "source": "source"}  # fmt: skip
NUMBERS = ("#", "self time", "calls", "share")
STYLE = """
.nbkit-static{--fg:var(--jp-ui-font-color1,#1f2328);--bg:var(--jp-layout-color0,#fff);color:var(--fg);background:var(--bg);
font:12px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);font-variant-numeric:tabular-nums;padding:8px 10px;
border:1px solid color-mix(in srgb,var(--fg) 14%,var(--bg));border-radius:4px;overflow:auto}
@media (prefers-color-scheme:dark){
.nbkit-static{--fg:var(--jp-ui-font-color1,#e6e6e6);--bg:var(--jp-layout-color0,#161616)}}
.nbkit-static.nbkit-static p{margin:0 0 4px}
.nbkit-static.nbkit-static .nbkit-tables{display:flex;flex-wrap:wrap;align-items:flex-start;gap:4px 24px}
.nbkit-static.nbkit-static table{border-collapse:collapse;margin:6px 0;
font-size:12px;table-layout:auto}
.nbkit-static.nbkit-static caption{text-align:left;font-weight:600;padding:0;color:inherit}
.nbkit-static.nbkit-static :is(th,td){text-align:left;padding:1px 12px 1px 0;border:0;
max-width:340px;overflow:hidden;
text-overflow:ellipsis;white-space:nowrap;unicode-bidi:isolate}
.nbkit-static.nbkit-static tr:nth-child(n){background:none}
.nbkit-static.nbkit-static th{border-bottom:1px solid color-mix(in srgb,var(--fg) 30%,var(--bg))}
.nbkit-static.nbkit-static .nbkit-number{text-align:right}.nbkit-static.nbkit-static .nbkit-null{opacity:.7}
.nbkit-static.nbkit-static i{display:inline-block;width:8px;height:8px;border-radius:2px;margin-right:6px}
.nbkit-static.nbkit-static .nbkit-incomplete{border-left:3px solid #d64545;padding-left:8px}
"""
Cell = str | None


def static_table(trace: Trace, *, slowest: int = 10, first: int = 20) -> str:
    """HTML of the summary, the slowest kinds of op and modules, and the first calls; every name escaped."""
    calls = first_calls_table(trace, first) if len(trace.ops) else "<p>No op was recorded.</p>"
    return f'<style>{STYLE}</style><div class="nbkit-static">{totals_tables(trace, slowest)}{calls}</div>'


def totals_tables(trace: Trace, count: int) -> str:
    """HTML of the trace's facts and, if it has ops, the tables of its slowest ops and modules and of its phases."""
    known = facts(trace)
    return _head(known) + (f'<div class="nbkit-tables">{_totals(trace, known, count)}</div>' if len(trace.ops) else "")


def first_calls_table(trace: Trace, count: int) -> str:
    """HTML table of the first calls; the caller has the style."""
    shown_calls = min(count, len(trace.ops))
    return _calls(trace, range(shown_calls), f"First {units.counted(shown_calls, 'call')}")


def slowest_calls_table(trace: Trace, count: int) -> str:
    """HTML table of the single calls of most self time; the caller has the style."""
    self_time_us = trace.ops["self_time_us"].where(trace.ops["op_id"].isin(computing_ops(trace.ops)["op_id"]), -1.0)
    order = (-self_time_us).argsort(kind="stable")[:count]
    return _calls(trace, order.tolist(), "Slowest calls")


def _head(known: Facts) -> str:
    figures = " · ".join(f"{escape(label)} <b>{escape(value)}</b>" for label, value in known.figures)
    parts = [f"<p><b>{escape(known.title)}</b> · {figures}</p>"]
    if known.incomplete:
        parts.append(f'<p class="nbkit-incomplete"><b>INCOMPLETE</b> {escape(known.incomplete)}</p>')
    parts += [f"<p>{escape(note)}</p>" for note in known.notes]
    return "".join(parts)


def _totals(trace: Trace, known: Facts, count: int) -> str:
    ops = computing_ops(trace.ops)
    kinds, modules = by_op(ops).head(count), by_module(ops).head(count)
    has_models = ops["model"].nunique() > 1
    paths = [
        shown_module(*name, with_model=has_models) for name in zip(modules["model"], modules["module"], strict=True)
    ]
    return (
        _total_table("Slowest ops", "op", [shown(name) for name in kinds["op"]], kinds)
        + _total_table("Slowest modules", "module", paths, modules)
        + _total_table("Phases", "phase", list(known.phases["phase"]), known.phases)
    )


def _total_table(title: str, noun: str, names: Sequence[str], totals: pd.DataFrame) -> str:
    lines = [[name, *texts] for name, texts in zip(names, total_texts(totals), strict=True)]
    return html_table(title, [noun, "calls", "self time", "share"], lines)


def _calls(trace: Trace, op_ids: Iterable[int], title: str) -> str:
    ids = list(op_ids)
    # Only the shown calls are encoded: their tensors and themselves, renumbered from 0.
    few = trace.ops.iloc[ids].assign(op_id=np.arange(len(ids)), parent_id=pd.array([None] * len(ids), dtype="Int64"))
    tensors = trace.frames.get("tensors", TENSORS.frame())
    near = tensors[tensors["op_id"].isin(ids)]
    place = {op_id: index for index, op_id in enumerate(ids)}
    near = near.assign(op_id=near["op_id"].map(place).astype("int64")).reset_index(drop=True)
    encoded = encode(few.reset_index(drop=True), near)
    texts = list(COLUMNS)[1:]
    cells = [[str(op_id), *(cell(encoded, place, name) for name in texts)] for place, op_id in enumerate(ids)]
    return html_table(title, list(COLUMNS.values()), cells)


def html_table(title: str, columns: Sequence[str], table: Iterable[Iterable[object]]) -> str:
    """An HTML table of texts; None reads as a dash, phases get their colour beside the label."""
    head = "".join(f'<th scope="col"{_look(name)}>{escape(name)}</th>' for name in columns)
    lines = [
        "".join(f"<td{_look(name)}>{_cell(name, value)}</td>" for name, value in zip(columns, row, strict=True))
        for row in table
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _look(column: str) -> str:
    return ' class="nbkit-number"' if column in NUMBERS else ""


def _cell(column: str, value: object) -> str:
    if value is None:
        return f'<span class="nbkit-null">{units.NULL}</span>'
    color = PHASE_COLORS.get(str(value)) if column == "phase" else None
    return (f'<i style="background:{color}"></i>' if color else "") + escape(str(value))
