"""The flame graph of a report: live, with what does not follow from the op table's block, and as a static picture."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nbkit.analysis.query.op_table import encode
from nbkit.schema import TENSORS
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.data import NUMBERS, TEXTS, State, column
from nbkit.views.flamegraph.difference import PER_US as VERDICT_PER_US
from nbkit.views.flamegraph.difference import TYPES, flame_states
from nbkit.views.flamegraph.difference_svg import difference_html
from nbkit.views.flamegraph.svg import flame_svg
from nbkit.views.op_table.report_data import op_columns
from nbkit.views.panels.pack import codes, numbers, pack, steps
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.panels.rounded import PER_US, rounded
from nbkit.views.tables.raw import with_short_sources

# Columns of `ops` that a flame graph's are made of.
OP_TEXTS = ("model", "module", *TEXTS.values())
OP_NUMBERS = ("parent_id", *NUMBERS.values())


def flame_panel(contents: Contents) -> Panel:
    """Returns the panel of the flame graph, or of its difference to the base, with the ops of the op table's panel."""
    trace, base = contents.trace, contents.base
    states = flame_states(trace, base)
    static = flame_svg(trace) if base is None else difference_html(states)
    return Panel("flamegraph", "Flame graph", payload(states, base), static)


def payload(states: Mapping[str, State | None], base: Trace | None = None) -> bytes:
    """Packs `flame_states(trace, base)` as a block; equal traces give equal blocks.

    widgets/src/report/flame_state.js makes the states again: of the ops in the block of `op_data` of the same trace,
    and of those of the base, which are in this one. Times are kept to the nanosecond.
    """
    now, before, difference = (states[name] for name in ("flame", "base", "difference"))
    return pack(
        {
            "flame": None if now is None else _beside_ops(now),
            "base": None if before is None or base is None else {**_beside_ops(before), "ops": _flame_ops(base)},
            "difference": None if difference is None else _difference(difference),
        }
    )


def _beside_ops(state: State) -> dict[str, Any]:
    """Returns what does not follow from the ops: the tracks, the memory, and the texts around them."""
    memory = state["memory"]
    rest = {name: value for name, value in state.items() if name not in ("columns", "strings")}
    return {
        **rest,
        "track": codes(column(state, "track")),
        "memory": None if memory is None else [_memory(device) for device in memory],
    }


def _memory(device: Mapping[str, Any]) -> dict[str, Any]:
    time, allocated = (np.frombuffer(device[name], "<f8") for name in ("time", "allocated"))
    return {**device, "time": steps(time, PER_US), "allocated": steps(allocated)}


def _flame_ops(trace: Trace) -> dict[str, Any]:
    """Returns the ops of a trace that has no op table in the report."""
    ops = with_short_sources(encode(rounded(Trace({"ops": trace.ops})).ops, TENSORS.frame()))
    texts = {name: ops.texts[name] for name in OP_TEXTS}
    return op_columns(replace(ops, texts=texts, numbers={name: ops.numbers[name] for name in OP_NUMBERS}))


def _difference(state: State) -> State:
    views = {name: {**view, "columns": _judged(view["columns"])} for name, view in state["views"].items()}
    return {**state, "views": views}


def _judged(packed: Mapping[str, bytes]) -> dict[str, Any]:
    """Returns the columns of one view of the state of a difference."""
    columns = {name: np.frombuffer(data, TYPES[name]) for name, data in packed.items()}
    return {
        name: numbers(values, VERDICT_PER_US) if values.dtype.kind == "f" else codes(values)
        for name, values in columns.items()
    }
