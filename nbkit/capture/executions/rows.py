"""Completes the results of a recorded step by what the frames say of their ops."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from torch import nn

from nbkit.capture.executions.calls import WRITTEN_MEMORY, Call, Place
from nbkit.capture.executions.observer import ExecutionObserver
from nbkit.capture.graphs.fx_values import module_stack, source_line
from nbkit.step.decode import cells_in
from nbkit.trace.executions.execution import Result

COLUMNS = ["module", "phase", "source", "arguments"]


def completed(results: Sequence[Result], observer: ExecutionObserver, ops: pd.DataFrame) -> tuple[Result, ...]:
    """Returns the results with module, phase, source and arguments, and with the names of parameters and buffers."""
    rows = zip(*(cells_in(ops[column]) for column in COLUMNS), strict=True)
    texts = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    maker = {result: call for call in observer.calls for result in call.results}
    named = _names(observer)
    return tuple(
        _of_op(result, maker[result.result_id], observer, texts) if result.kind == "op" else _held(result, named)
        for result in results
    )


def _of_op(result: Result, call: Call, observer: ExecutionObserver, texts: list[dict[str, Any]]) -> Result:
    op_id = int(observer.op_ids[call.slot]) if 0 <= call.slot < len(observer.op_ids) else -1
    row = texts[op_id] if op_id >= 0 else {}
    if call.func == WRITTEN_MEMORY:
        row = {**row, "arguments": None}
    if call.place is not None:
        row = {"arguments": call.arguments, **row, **_of_node(call.place)}
    return replace(result, **row)


def _of_node(place: Place) -> dict[str, Any]:
    """Returns what the node of a graph says; what it does not know it leaves out."""
    stack = module_stack(place.node)
    said = {
        "module": stack[-1][0] if stack else None,
        "source": source_line(place.node),
        "phase": place.phase,
    }
    return {column: text for column, text in said.items() if text is not None}


def _names(observer: ExecutionObserver) -> dict[int, tuple[str, str]]:
    """Returns kind and name of the results that are parameters or buffers of the models that ran."""
    found: dict[int, tuple[str, str]] = {}
    for root, path, tensor in observer.named:
        label = f"{observer.labels[root]}." if root else ""
        kind = "parameter" if isinstance(tensor, nn.Parameter) else "buffer"
        for result in observer.memory.outside(tensor):
            found.setdefault(result, (kind, label + path))
    return found


def _held(result: Result, named: dict[int, tuple[str, str]]) -> Result:
    if result.kind != "constant" or result.result_id not in named:
        return result
    kind, name = named[result.result_id]
    return replace(result, kind=kind, name=name)
