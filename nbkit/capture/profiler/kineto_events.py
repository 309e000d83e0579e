"""Turns Kineto's raw result into timeline events."""

import json
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch

from nbkit.capture.profiler.event_inputs import DTYPES, input_columns, own_inputs
from nbkit.capture.profiler.kineto import KinetoOptions, allocations
from nbkit.compat import torch_versions
from nbkit.ops.flops import call_flops, formulas
from nbkit.timeline import HOST, KERNEL, MEMORY, RUNTIME, Events
from nbkit.timeline.events import ABSENT

KINDS = {
    "cpu_op": HOST,
    "user_annotation": HOST,
    "kernel": KERNEL,
    "gpu_memcpy": KERNEL,
    "gpu_memset": KERNEL,
    "cuda_runtime": RUNTIME,
    "cuda_driver": RUNTIME,
    "xpu_runtime": RUNTIME,
    "mtia_runtime": RUNTIME,
    "privateuse1_runtime": RUNTIME,
    "privateuse1_driver": RUNTIME,
}
PROCESS_GROUPS = ("gloo:", "nccl:", "mpi:", "ucc:", "xccl:", "hccl:")
# Events that stand for what other events say already, or for the profiler's own work.
ELSEWHERE = ("cpu_instant_event", "overhead")


def read(result: Any, options: KinetoOptions, skip: Callable[[str], None]) -> Events:
    """Returns the events of a result, none if it is None; `skip` counts those of a kind that `ops` does not hold."""
    raw, kinds, blocks = [], [], []
    for event in () if result is None else result.events():
        activity = torch_versions.activity(event)
        if activity in KINDS and not torch_versions.is_hidden(event):
            raw.append(event)
            kinds.append(KINDS[activity])
            blocks.append(activity == "user_annotation")
        elif activity not in ELSEWHERE:
            skip(f"{activity} events of the profiler")
    kind = np.array(kinds, dtype=np.int8)
    events = Events(
        name=[event.name() for event in raw],
        kind=kind,
        start_ns=_integers([event.start_ns() for event in raw]),
        duration_ns=_integers([max(event.duration_ns(), 0) for event in raw]),
        thread=_integers([event.start_thread_id() for event in raw]),
        overload=[torch_versions.overload_name(event) for event in raw],
        block=_integers(blocks),
        sequence=_integers([event.sequence_nr() for event in raw]),
        forward_thread=_integers([event.fwd_thread_id() for event in raw]),
        input_shapes=[_shapes(event) for event in raw] if options.shapes else None,
    )
    if options.shapes:
        for name, texts in input_columns(raw).items():
            setattr(events, name, texts)
        events.flops = _integers(_flops(events, raw))
        events.size_bytes = _integers([_moved(event) for event in raw])
    if options.device is not None:
        _add_device(events, raw, kind)
    return _with_memory(events, result) if options.memory and result is not None else events


def before_the_end(events: Events, root: str) -> Events:
    """Returns the events without driver calls after the end of the range `root`: there nbkit waits for the device."""
    if root not in events.name:
        return events
    at = events.name.index(root)
    end = events.start_ns[at] + events.duration_ns[at]
    return events.at(np.flatnonzero((events.kind != RUNTIME) | (events.start_ns < end)))


def _integers(values: Sequence[int]) -> Any:
    return np.array(values, dtype=np.int64)


def _shapes(event: Any) -> str | None:
    shapes = own_inputs(event, event.shapes())
    return str(shapes) if shapes else None


def _flops(events: Events, raw: list[Any]) -> list[int]:
    """Returns the FLOPs of each event; its arguments other than tensors are only read where there are any."""
    known = {name.replace(".", "::"): formula for name, formula in formulas().items()}
    results: dict[tuple[str, str, str], int] = {}
    flops = [ABSENT] * len(raw)
    for row, (name, shapes) in enumerate(zip(events.name, events.texts("input_shapes"), strict=True)):
        if shapes is None or name not in known:
            continue
        event = raw[row]
        values = own_inputs(event, event.concrete_inputs()) if "[]" in shapes else []
        key = name, shapes, str(values)
        if key not in results:
            results[key] = call_flops(known[name], own_inputs(event, event.shapes()), values) or ABSENT
        flops[row] = results[key]
    return flops


def _moved(event: Any) -> int:
    """Returns the bytes that a process group's own range moves ("gloo:all_reduce"); -1 for other events."""
    if not event.name().startswith(PROCESS_GROUPS):
        return ABSENT
    sizes = [prod(shape) * _item_bytes(dtype) for shape, dtype in zip(event.shapes(), event.dtypes(), strict=False)]
    return sum(sizes) or ABSENT


def _item_bytes(dtype: str) -> int:
    found = getattr(torch, DTYPES.get(dtype, ""), None)
    return found.itemsize if isinstance(found, torch.dtype) else 0


def _add_device(events: Events, raw: list[Any], kind: Any) -> None:
    """Fills in what only device work, and the calls that launch it, have."""
    is_host = kind == HOST
    own = _integers([event.correlation_id() for event in raw])
    events.own_id = np.where(is_host, own, 0)
    events.correlation = np.where(is_host, 0, own)
    events.external_id = np.where(is_host, 0, _integers([event.linked_correlation_id() for event in raw]))
    events.device, events.stream = [None] * len(raw), np.full(len(raw), ABSENT, dtype=np.int64)
    moved = events.size_bytes = events.integers("size_bytes")
    for row in np.flatnonzero(kind == KERNEL).tolist():
        event = raw[row]
        events.device[row] = f"{event.device_type().name.lower()}:{event.device_index()}"
        events.stream[row] = event.device_resource_id()
        moved[row] = _details(event).get("bytes", ABSENT)


def _details(event: Any) -> dict[str, Any]:
    """Returns what Kineto knows of an event beyond its columns: the inside of a JSON object."""
    try:
        details = json.loads(f"{{{torch_versions.metadata_json(event)}}}")
    except ValueError:
        return {}
    return details if isinstance(details, dict) else {}


def _with_memory(events: Events, result: Any) -> Events:
    """Returns the events and, behind them, the allocations."""
    nodes = list(allocations(result))
    fields = [node.extra_fields for node in nodes]
    behind = Events(
        name=["[memory]"] * len(nodes),
        kind=np.full(len(nodes), MEMORY, dtype=np.int8),
        start_ns=_integers([node.start_time_ns for node in nodes]),
        duration_ns=np.zeros(len(nodes), dtype=np.int64),
        thread=_integers([node.start_tid for node in nodes]),
        device=[str(field.device) for field in fields],
        size_bytes=_integers([field.alloc_size for field in fields]),
        allocated_bytes=_integers([field.total_allocated for field in fields]),
        address=_integers([field.ptr or 0 for field in fields]),
    )
    return events.and_more(behind)
