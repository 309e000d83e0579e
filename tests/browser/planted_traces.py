"""Traces of every verb whose every text tries to run, to break the page or to hide something."""

from typing import Any

import pandas as pd

from nbkit.schema import DIFFS, FINDINGS, MEMORY, MODULES, TENSORS, TEXT, Table
from nbkit.trace.trace import Trace
from tests.support.fakes import make_ops, make_trace

RUN = "window.__pwned=1"
PLANTS = (
    f"</script><script>{RUN}</script>",
    f"</ScRiPt ><ScRiPt>{RUN}</ScRiPt>",
    f"<!--<script>{RUN}",
    f"--><img src=x onerror={RUN}>",
    f'" autofocus onfocus="{RUN}" x="',
    f"' onmouseover='{RUN}' x='",
    f"</style></title></svg><svg onload={RUN}>",
    f"javascript:{RUN}",
    f"${{{RUN}}} {{{{{RUN}}}}} `{RUN}`",
    "\u202e\u2066gnp.\u200fexe\u2069",
    "\U0001f600\U0001f469\u200d\U0001f4bb é \u0301",
    "W" * 10_000,
    "$x_{$ \\frac{",
)
# What only meta can hold: a name out of a log that was no UTF-8.
BROKEN = "\ud800 \udcff" + PLANTS[0]


def planted_traces() -> list[Trace]:
    """One trace of each verb, and one of a verb that nobody knows."""
    verbs: dict[str, dict[str, pd.DataFrame]] = {
        "optrace": {},
        "optime": {"memory": _filled(MEMORY, time_us=1.0, delta_bytes=8)},
        "opcheck": {"findings": _filled(FINDINGS, op_id=0, nan_count=1)},
        "opdiff": {"diffs": _filled(DIFFS, op_id=0, noise_ratio=9.0)},
        PLANTS[0]: {},
    }
    return [_trace(verb, frames) for verb, frames in verbs.items()]


def _trace(verb: str, frames: dict[str, pd.DataFrame]) -> Trace:
    levels = ("range", "aten", "module", "kernel", "api", PLANTS[1])
    names = ("op", "model", "module", "phase", "device", "group", "input_shapes", "source")
    rows = [
        {**dict.fromkeys(names, plant), "level": levels[place % 6], "parent_id": place - 1 if place % 6 else None}
        for place, plant in enumerate(PLANTS)
    ]
    trace = make_trace(make_ops(*rows), _filled(TENSORS, op_id=1), _filled(MODULES), verb=verb, **_meta())
    trace.frames.update(frames)
    return trace


def _meta() -> dict[str, Any]:
    place = {"op_id": 1, "op": BROKEN, "phase": BROKEN, "module": BROKEN, "source": BROKEN, "message": BROKEN}
    return {
        "name": BROKEN, "notes": [BROKEN, *PLANTS], "skipped": dict.fromkeys((BROKEN, *PLANTS), 2), "complete": False,
        "error": {"type": BROKEN, "message": BROKEN, "source": BROKEN, "op_id": 1}, "devices": [BROKEN, *PLANTS],
        "versions": {BROKEN: BROKEN, "torch": BROKEN}, "created": BROKEN, "recorder": BROKEN, "reference": BROKEN,
        "against": BROKEN, "first_divergence": place, "filters": {BROKEN: BROKEN}, "filtered_ops": 1,
    }  # fmt: skip


def _filled(table: Table, **numbers: float) -> pd.DataFrame:
    """A frame of a table with a plant in every text, a row for each; numbers as given, else 0."""
    columns: dict[str, Any] = {}
    for column in table.columns:
        if column.dtype == TEXT:
            columns[column.name] = list(PLANTS)
        elif column.dtype in ("int64", "bool", "Int64") or column.name in numbers:
            columns[column.name] = [numbers.get(column.name, 0)] * len(PLANTS)
    return table.frame(columns)
