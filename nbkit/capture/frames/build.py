"""Builds the frames and meta of a trace from the raw record of a step."""

import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.optim import Optimizer

from nbkit.capture.frames.module_rows import modules_frame, named_tensors, state_names, tensor_names
from nbkit.capture.frames.op_rows import PHASES, OpRows
from nbkit.capture.frames.raised import without_not_run
from nbkit.capture.frames.selection import Selection
from nbkit.capture.frames.tensor_columns import TensorColumns
from nbkit.capture.frames.tensor_rows import Spans, TensorSpans, sizes_text, tensors_frame
from nbkit.capture.raw.arguments import Arguments
from nbkit.capture.raw.recording import OpPlaces, Recording
from nbkit.capture.raw.shards import LOCAL
from nbkit.capture.raw.statistics import Statistics
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.compat.installed import own_version
from nbkit.ops.names import packet_of
from nbkit.ops.undeclared import ONLY_FIRST_DIFFERENTIABLE


def build(
    recording: Recording,
    modules: ModuleCalls,
    optimizers: Iterable[Optimizer],
    statistics: Statistics | None,
    selection: Selection,
    getters: int,
) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """Returns the frames (ops, tensors, modules, lines) and the part of meta that follows from the recording.

    Beside it `failed_op_id`, the op_ids of what added to gradients in `accumulating` and, for every row of
    recording.ops, the op_id in `op_ids`; -1 of one that was left out.
    """
    rows = OpRows(recording, modules)
    # Reading values takes far longer than the calls around it: it is not their time.
    rows.leave_out(recording.spent.array())
    labels = modules.roots.labels()
    tensors = TensorColumns(recording.registry)
    named = [*named_tensors(modules)]
    names, owners = tensor_names(named, tensors)
    texts = {"name": names, "state_name": state_names(named, optimizers, tensors)}
    paths = [(module.root, module.path) for module in modules.called]
    rows.own(owners, paths)
    columns = rows.name_code, rows.names, rows.parent, rows.module
    wanted = selection.rows(*columns, [path for _, path in paths], np.where(rows.rerun, -1, rows.forward))
    chosen = np.flatnonzero(rows.keep & wanted)
    spans = tensor_spans(recording, rows)
    devices = row_devices(rows, tensors, spans)
    op_ids = np.full(rows.count + 1, -1, dtype=np.int64)  # the last entry answers for -1
    op_ids[chosen] = np.arange(len(chosen))
    places = recording.op_places = row_places(rows, chosen, paths)
    frames = {
        "ops": without_not_run(rows.frame(chosen, labels, places, devices, row_shapes(rows, tensors, spans))),
        "tensors": _tensors(recording, tensors, rows, spans, op_ids, texts, statistics),
        "modules": modules_frame(modules, labels),
        "lines": rows.lines(chosen),
    }
    _count_skipped(recording, modules, getters + rows.empty_calls)
    failed = np.flatnonzero(chosen == rows.failed)
    ran = np.unique(rows.module[rows.module >= 0])
    return frames, {
        "devices": sorted(devices[1]),
        "skipped": recording.skipped,
        "filters": selection.set_options(),
        "notes": [
            *selection.unmet(rows.names, [paths[number][1] for number in ran]),
            *([LOCAL] if recording.registry.has_shards else []),
        ],
        "filtered_ops": int(rows.keep.sum()) - len(chosen),
        "failed_op_id": int(failed[0]) if len(failed) else None,
        "accumulating": np.flatnonzero(rows.accumulates[chosen]),
        # The last entry is for what was seen and came to no row any more.
        "op_ids": np.append(op_ids[rows.row_of_slot], -1),
    }


def _count_skipped(recording: Recording, modules: ModuleCalls, idle_calls: int) -> None:
    for reason, count in recording.registry.skipped.items():
        recording.skip(reason, count)
    modules.other_threads.say(recording.skip)
    if idle_calls:
        recording.skip("API calls that ran no op (x.shape, x.size(), torch.is_complex(x))", idle_calls)


def versions() -> dict[str, str]:
    """Returns the versions that a reader of the trace needs."""
    return {"nbkit": own_version(), "torch": torch.__version__, "python": platform.python_version()}


@cache
def machine_text() -> str:
    """Returns the system, the architecture and, where the system tells it, the processor."""
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text(encoding="utf-8", errors="replace").splitlines() if cpus.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model")))
    processor = next(named, platform.processor())
    return ", ".join(filter(None, (f"{platform.system()} {platform.machine()}", processor)))


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def tensor_spans(recording: Recording, rows: OpRows) -> Spans:
    """Returns for each thread its aten ops and where their tensors stand among the records that it met."""
    spans = {}
    for thread in recording.threads:
        mine = np.flatnonzero((rows.thread == thread.number) & ~rows.is_api)
        first, inputs, outputs = (rows.integers[name][mine] for name in ("first_tensor", "inputs", "outputs"))
        spans[thread.number] = TensorSpans(mine, first, inputs, outputs, thread.tensors.integers("record"))
    return spans


def row_places(rows: OpRows, chosen: np.ndarray, paths: list[tuple[int, str]]) -> OpPlaces:
    """Returns what each row in `chosen` is and where it stands: columns of its frame, as numbers and their texts."""
    return {
        "op": (rows.name_code[chosen], rows.names),
        "module": (rows.module[chosen], [path for _, path in paths]),
        "phase": (rows.phases()[chosen], PHASES),
        "source": (rows.source_code[chosen], rows.sources),
        "own_source": (rows.own_code[chosen], rows.sources),
    }


def row_devices(rows: OpRows, tensors: TensorColumns, spans: Spans) -> tuple[np.ndarray, list[str]]:
    """Returns each row's device as a number, and the names: of its first output, else first input, else first op."""
    by_record = np.append(tensors.device, -1)
    device = np.full(rows.count, -1, dtype=np.int64)
    for mine, first, inputs, outputs, records in spans.values():
        held = np.append(records, -1)  # the last entry answers for "no such tensor"
        of_output = by_record[held[np.where(outputs > 0, first + inputs, -1)]]
        of_input = by_record[held[np.where(inputs > 0, first, -1)]]
        device[mine] = np.where(of_output >= 0, of_output, of_input)
    below = np.flatnonzero((rows.parent >= 0) & (device >= 0))[::-1]  # the first one is written last
    while (device[rows.parent[below]] < 0).any():  # once per level of calls
        device[rows.parent[below]] = device[below]
        below = np.flatnonzero((rows.parent >= 0) & (device >= 0))[::-1]
    return device, [str(known) for known in tensors.devices]


def row_shapes(rows: OpRows, tensors: TensorColumns, spans: Spans) -> tuple[np.ndarray, list[str | None]]:
    """Returns the shapes of each row's inputs as a number, and the texts; -1 where they are not known."""
    texts: list[str | None] = []
    codes = np.full(rows.count, -1, dtype=np.int64)
    sizes = [sizes_text(shape) for shape, *_ in tensors.geometries]
    for mine, first, inputs, _, records in spans.values():
        geometry, forms = np.append(tensors.geometry, -1)[records], rows.arguments_code[mine]
        _, shown, numbers = np.unique(
            _input_codes(forms, geometry, first, inputs), return_index=True, return_inverse=True
        )
        codes[mine] = len(texts) + numbers
        for row in shown.tolist():
            met = geometry[first[row] : first[row] + inputs[row]].tolist()
            is_known = min(met, default=0) >= 0  # a lazy parameter has no shape
            texts.append(_shapes_text(rows.arguments[forms[row]], [sizes[code] for code in met]) if is_known else None)
    return codes, texts


def _input_codes(forms: np.ndarray, geometry: np.ndarray, first: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Returns numbers of rows that are equal where the forms and the geometries of all inputs are."""
    codes, span = forms.copy(), int(geometry.max(initial=0)) + 2
    for position in range(int(inputs.max(initial=0))):
        has = np.flatnonzero(inputs > position)
        numbers, _ = pd.factorize(codes[has] * span + geometry[first[has] + position] + 1)
        codes[has] = numbers + codes.max() + 1
    return codes


def _shapes_text(arguments: Arguments | None, sizes: list[str]) -> str | None:
    """Returns the shapes of the arguments of a call, as torch.profiler writes them, from those of its tensors."""
    if arguments is None or len(sizes) != sum(abs(count) for count in arguments.form if count is not None):
        return None
    rest = iter(sizes)
    parts = [
        "[]" if count is None else next(rest) if count < 0 else f"[{', '.join(next(rest) for _ in range(count))}]"
        for count in arguments.form
    ]
    return f"[{', '.join(parts)}]"


def _tensors(
    recording: Recording,
    tensors: TensorColumns,
    rows: OpRows,
    spans: Spans,
    op_ids: np.ndarray,
    names: dict[str, dict[int, str]],
    statistics: Statistics | None,
) -> pd.DataFrame:
    values = statistics.values if statistics is not None else None
    first = np.array([packet_of(name) in ONLY_FIRST_DIFFERENTIABLE for name in rows.names], dtype=bool)[rows.name_code]
    return tensors_frame(recording, tensors, op_ids, spans, rows.made_node, first, names, values)
