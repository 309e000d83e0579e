"""Rebuilds one call of a recorded step with the values it had."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.calls.parameters import Parameters, parameter_reader
from nbkit.capture.calls.rebuilding import BuiltCall, refusing
from nbkit.capture.calls.taking import needs_no_values
from nbkit.capture.replay.op_traits import traits_of
from nbkit.errors import OptionError, TraceError
from nbkit.numerics.precision import Array
from nbkit.trace.calls.layout import Record
from nbkit.trace.calls.reading import CallFolder
from nbkit.trace.captured_calls import captured_call
from nbkit.trace.captured_folder import runnable
from nbkit.trace.captured_values import CapturedCall, CapturedResult
from nbkit.trace.checks import checked_count
from nbkit.trace.storage import META
from nbkit.trace.trace import Trace


@dataclass(frozen=True)
class OpResult:
    """Holds a result: `actual` in its own dtype, `expected` of the reference, in float64 unless exact.

    `role` and `position` are those of `diffs`: an output, or an input that was written. Of a call of opcapture, which
    compares nothing, `expected` is None.
    """

    role: str
    position: int
    actual: Tensor
    expected: Tensor | None


@dataclass(frozen=True)
class OpCall:
    """Describes one call: `op(*args, **kwargs)` runs it again on the CPU; `device` is where it ran in the step."""

    op: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    device: str
    results: tuple[OpResult, ...]

    @property
    def actual(self) -> Tensor:
        """Returns what the step computed: the first of the results that were kept."""
        return self.results[0].actual

    @property
    def expected(self) -> Tensor | None:
        """Returns what the reference computed for it; None of a call of opcapture."""
        return self.results[0].expected


def call_of(trace: Trace | str | PathLike[str], op_id: int, *, parameters: Parameters | None = None) -> OpCall:
    """Returns the call with its inputs from before it ran and the results that were kept, all as tensors on the CPU.

    `nbkit.opdiff` keeps the first wrong calls of a step; see its `keep` and `keep_ops`. In place of a trace, the folder
    that `nbkit.opcapture` wrote holds all of its calls: there `op_id` is the number of the call in the folder, which is
    `record` in `captures`, and `parameters` is as in `nbkit.opreplay`. Of views it holds shapes alone, which come on
    the device meta; memory that a call overwrites is empty. Raises OptionError if this call was not kept, or if its op
    is not known in this process; TraceError if the folder holds no calls, or its record cannot be used.
    """
    if isinstance(trace, str | PathLike):
        path = Path(trace)
        if not (path / META).is_file():
            return _of_folder(CallFolder(path, parameter_reader(parameters)), checked_count("op_id", op_id, 0))
        trace = Trace.load(path)
    return of_captured(captured_call(trace, op_id))


def of_captured(call: CapturedCall) -> OpCall:
    """Returns the call that was kept in a trace; raises OptionError if its op is not known in this process."""
    op, built = op_of(call.op), built_from(call)
    return OpCall(op, built.args, built.kwargs, call.device, tuple(map(_result, call.results)))


def built_from(call: CapturedCall) -> BuiltCall:
    """Returns the arguments of a call that was kept in a trace; its tensors come on the CPU."""
    contents: list[Array] = []

    def put(data: Array) -> str:
        contents.append(data)
        return str(len(contents) - 1)

    record = runnable(call, put)
    for storage in record["storages"]:
        storage.pop("device", None)
    return BuiltCall(record, lambda name: contents[int(str(name))])


def _of_folder(folder: CallFolder, number: int) -> OpCall:
    record = next((record for one, record in folder if one == number), None)
    if record is None:
        raise OptionError(f"{folder.path} has no call {number}; its {len(folder)} calls are numbered from 0.")
    if isinstance(record, TraceError):
        raise TraceError(f"Call {number} of {folder.path} cannot be used: {record}.") from record
    with refusing("its record cannot be used"):
        op = op_of(record["op"])
        # What a view looks at is not stored: shapes and strides are all that it has.
        is_form = needs_no_values(traits_of(op))
        built = BuiltCall(record, folder.content, torch.device("meta" if is_form else "cpu"))
        devices = [storage["device"] for storage in record["storages"] if "device" in storage]
        results = tuple(_captured(record, built.argument if is_form else built.result))
    return OpCall(op, built.args, built.kwargs, str(devices[0]) if devices else "cpu", results)


def _captured(record: Record, result: Callable[[int], Tensor]) -> Iterator[OpResult]:
    """Yields the tensors that a call returned, and those that it wrote to without returning them."""
    returned = [*_numbers(record.get("outputs", ()))]
    for position, number in returned:
        yield OpResult("output", position, result(number), None)
    arguments = [number for _, number in _numbers([record["args"], [*record.get("kwargs", {}).values()]])]
    for before, after in record.get("written", ()):
        if after not in [number for _, number in returned]:
            yield OpResult("input", arguments.index(before), result(after), None)


def _numbers(value: Any) -> Iterator[tuple[int, int]]:
    """Yields the numbers of the tensors in JSON data, each with the position of its value among all."""
    flat = [value]
    while any(isinstance(one, list | tuple) for one in flat):
        flat = [part for one in flat for part in (one if isinstance(one, list | tuple) else [one])]
    yield from ((place, one["tensor"]) for place, one in enumerate(flat) if isinstance(one, dict) and "tensor" in one)


def op_of(name: str) -> OpOverload:
    """Returns the op of this name. Raises OptionError if torch does not know it here."""
    try:
        namespace, packet, overload = name.split(".")
        op: OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    except (AttributeError, ValueError) as error:
        raise OptionError(f"torch knows no op {name!r} here; import the package that brings it.") from error
    return op


def _result(captured: CapturedResult) -> OpResult:
    actual = _tensor(captured.actual).to(getattr(torch, captured.dtype)).reshape(captured.shape)
    return OpResult(
        captured.role, captured.position, actual, _tensor(captured.expected).reshape(captured.expected_shape)
    )


def _tensor(values: Array) -> Tensor:
    return torch.from_numpy(np.array(values))
