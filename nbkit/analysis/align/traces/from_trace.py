"""Makes an execution without values of a recorded trace: what its statistics say stands in their place."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nbkit.schema import OPS, TENSORS
from nbkit.step.decode import cells_in
from nbkit.step.step import Step, Tensor
from nbkit.trace.executions.execution import Execution, Result
from nbkit.trace.executions.features import Features
from nbkit.trace.trace import Trace, step_of

NO_STATISTICS = "The trace has no statistics of its tensors; record it with optrace(values='stats')."

TEXTS = ("op", "module", "phase", "source", "arguments")
MOMENTS = ("mean", "norm", "min", "max")


@dataclass(frozen=True)
class TraceExecution(Execution):
    """Holds the execution that a trace recorded, with its step; `rows` are the result_ids of the rows of tensors."""

    step: Step = field(default_factory=lambda: Step(OPS.frame(), TENSORS.frame()))
    rows: tuple[int, ...] = ()

    def result_of(self, row: int) -> Result:
        """Returns the result that a row of tensors is of."""
        return self.results[self.rows[row]]


def trace_execution(trace: Trace) -> TraceExecution:
    """Returns the results of the aten ops of a trace, with features as far as its statistics go.

    Of a feature that the statistics do not have, mean_abs is nan, distinct is 0 and projections are empty. A tensor
    that no recorded op made is a parameter if it has a name (buffers too: a trace does not tell them apart), else a
    constant. `outputs` are what ops made and none read.
    """
    step = step_of(trace)
    rows = [0] * len(step.tensors)
    results = tuple(_results(step, rows))
    read = {source for result in results for source in result.sources}
    outputs = {
        result.name: result.result_id for result in results if result.kind == "op" and result.result_id not in read
    }
    notes = () if step.tensors["mean"].notna().any() or not len(step.tensors) else (NO_STATISTICS,)
    error = trace.meta.get("error")
    sentence = None if error is None else f"The run ended early with {error['type']}: {error['message']}"
    name = str(trace.meta.get("name") or "trace")
    return TraceExecution(name, "trace", results, outputs, error=sentence, notes=notes, step=step, rows=tuple(rows))


def _results(step: Step, rows: list[int]) -> Iterator[Result]:
    """Yields the results of a trace; `rows` is filled with the result_id of each row of tensors."""
    tensors, features = step.records(), _features(step)
    columns_of_ops = {name: cells_in(step.ops[name]) for name in TEXTS}
    latest: dict[int, int] = {}  # by tensor_id
    count = calls = 0
    for op_id, inputs, made in step.calls():
        for row in inputs:
            tensor = tensors[row]
            if tensor.tensor_id not in latest:
                latest[tensor.tensor_id] = count
                kind, name = ("constant", f"constant_{count}") if tensor.name is None else ("parameter", tensor.name)
                yield _result(count, kind, name, tensor, features=features[row])
                count += 1
            rows[row] = latest[tensor.tensor_id]
        sources = tuple(rows[row] for row in inputs)
        texts = {name: held[op_id] for name, held in columns_of_ops.items()}
        for row in made:
            tensor = tensors[row]
            name = f"{str(texts['op']).removeprefix('aten.').partition('.')[0]}_{count}"
            more = {"call": calls, "position": tensor.position, "sources": sources, "features": features[row], **texts}
            yield _result(count, "op", name, tensor, **more)
            rows[row] = latest[tensor.tensor_id] = count
            count += 1
        calls += bool(made)


def _result(number: int, kind: str, name: str, tensor: Tensor, **more: Any) -> Result:
    return Result(number, kind, name, tensor.dtype, tensor.shape, **more)


def _features(step: Step) -> list[Features | None]:
    """Returns what is known of each row of tensors."""
    columns = (cells_in(step.tensors[name]) for name in ("numel", "nan_count", "inf_count", *MOMENTS))
    return [None if row[1] is None else _of_statistics(*row) for row in zip(*columns, strict=True)]


def _of_statistics(numel: int, nan_count: int, inf_count: int, *moments: float | None) -> Features:
    mean, norm, low, high = (0.0 if number is None else number for number in moments)
    finite = numel - nan_count - inf_count
    rms = norm / math.sqrt(finite) if finite else 0.0
    return Features(numel, mean, math.nan, rms, low, high, nan_count, inf_count, 0, (), ())
