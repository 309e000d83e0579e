"""Runs a torch model once and holds what each op computed (torch_execution)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from nbkit.capture.executions.calls import Calls
from nbkit.capture.executions.names import named_inputs, named_outputs
from nbkit.capture.executions.observer import ExecutionObserver
from nbkit.capture.executions.rows import completed
from nbkit.capture.executions.state import LeftAsItWas
from nbkit.capture.recorder.recorder import Recorder
from nbkit.errors import OptionError, first_line
from nbkit.executions.execution import Collector, Execution
from nbkit.executions.values import KEPT_BYTES, Values
from nbkit.trace.trace import Trace


class ExecutionRecorder(Recorder):
    """Records the step of an execution."""

    verb = "opalign"


def torch_execution(
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
    kept_bytes: int = KEPT_BYTES,
    name: str | None = None,
) -> Execution:
    """Runs a model once, under a recorder, and returns all results with their values.

    Gradients, random numbers, training mode and what the run writes to are put back afterwards.
    """
    kwargs = dict(kwargs or {})
    _check(target, args)
    collector = Collector(Values(kept_bytes))
    observer = ExecutionObserver(collector)
    recorder = ExecutionRecorder(observer, name=name or _name(target))
    outputs: dict[str, int] = {}
    with LeftAsItWas(observer, target, args, kwargs):
        with suppress(Exception), recorder:
            observer.add_inputs(named_inputs(target, args, kwargs))
            out = target(*args, **kwargs)
            outputs = {each: observer.read(tensor) for each, tensor in named_outputs(out)}
    trace = recorder.trace
    assert trace is not None
    results = completed(collector.results, observer, trace.ops)
    calls = Calls(observer.calls, collector.values)
    error = _error_text(trace)
    return Execution(recorder.name, "torch", results, outputs, collector.values, calls, error)


def _check(target: Any, args: Any) -> None:
    if not callable(target):
        raise OptionError(f"A {type(target).__name__} cannot be run; give a module or another callable.")
    if not isinstance(args, list | tuple):
        raise OptionError(f"args is a {type(args).__name__}; give a tuple of the arguments.")


def _error_text(trace: Trace) -> str | None:
    """Returns the sentence for a run that ended early."""
    error = trace.meta["error"]
    if error is None:
        return None
    reason = f"{error['type']}: {first_line(Exception(error['message']))}"
    if error["op_id"] is None:
        return f"The run ended early with {reason}"
    failed = trace.ops.iloc[error["op_id"]]
    where = f" in module {failed['module']}" if isinstance(failed["module"], str) and failed["module"] else ""
    return f"The run ended early at {failed['op']}{where} with {reason}"


def _name(target: Any) -> str:
    return getattr(target, "__name__", None) or type(target).__name__
