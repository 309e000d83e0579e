"""The text twin of a trace: a few lines for a terminal, a log or a screen reader."""

from collections.abc import Sequence

import pandas as pd

from nbkit.analysis.slowest import by_module, by_op, computing_ops
from nbkit.schema import OPS
from nbkit.trace import Trace
from nbkit.views.facts import facts, total_texts
from nbkit.views.names import shown, shown_module

ROWS = 5


def summary(trace: Trace) -> str:
    """What ran, how long, the slowest ops and modules, what was skipped, what recording cost; no trailing newline."""
    known = facts(trace)
    ops = computing_ops(trace.frames.get("ops", OPS.frame()))
    lines = [f"{known.title}: {', '.join(_figure(label, value) for label, value in known.figures)}"]
    lines += [f"INCOMPLETE: {known.incomplete}"] if known.incomplete else []
    if len(ops):
        has_models = ops["model"].nunique() > 1
        modules = by_module(ops).head(ROWS)
        names = [
            shown_module(*name, with_model=has_models) for name in zip(modules["model"], modules["module"], strict=True)
        ]
        kinds = by_op(ops).head(ROWS)
        lines += _table("phase", list(known.phases["phase"]), known.phases)
        lines += _table("slowest ops", [shown(name) for name in kinds["op"]], kinds)
        lines += _table("slowest modules", names, modules)
    else:
        lines.append("No op was recorded.")
    notes = ["", *known.notes] if known.notes else []
    return "\n".join([*lines, *notes])


def _figure(label: str, value: str) -> str:
    is_count = value.replace(",", "").isdigit()
    return f"{value} {label}" if is_count else f"{label} {value}"


def _table(title: str, names: Sequence[str], totals: pd.DataFrame) -> list[str]:
    width = max([len(title), 32, *map(len, names)])
    lines = [f"{title:<{width}} {'calls':>9} {'self time':>10} {'share':>8}"]
    for name, (calls, time, share) in zip(names, total_texts(totals), strict=True):
        lines.append(f"{name:<{width}} {calls:>9} {time:>10} {share:>8}")
    return ["", *lines]
