"""Makes the state of the flame graph: a row per op, as little-endian columns and dictionary-coded texts."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.query.op_table import source_lines
from nbkit.analysis.structure.module_repeats import module_repeats
from nbkit.schema import MEMORY, OPS
from nbkit.trace.trace import Trace
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import short_sources, shown

Ints = npt.NDArray[np.int32]
State = dict[str, Any]
NAME_LIMIT = 400
# Texts of the state and the column of `ops` that each is read from; `module` is the model's name and the path below it.
TEXTS = {"op": "op", "phase": "phase", "level": "level", "device": "device", "source": "source",
         "shapes": "input_shapes"}  # fmt: skip
NUMBERS = {"start": "start_us", "total": "total_time_us", "self": "self_time_us", "device_self": "self_device_time_us",
           "flops": "flops", "bytes": "size_bytes"}  # fmt: skip
# Layout has no use for an unknown time: such a frame has no width.
TIMES = ("start", "total", "self")


def flame_state(trace: Trace) -> State:
    """Returns the state of one trace: title, count, complete, strings, tracks, columns (bytes), memory, repeats, notes.

    Row i of the columns is the op with op_id i; -1 is missing in Int32 columns, NaN in Float64 ones. `parent` is -1
    where the parent is on another track. Names are on one line and cut. `repeats` has by the path of each module that
    is one of several alike, such as equal layers, the last part that these share in a path for all of them.
    """
    ops, known = OPS.check(trace.frames.get("ops", OPS.frame())), facts(trace)
    names, track = _tracks(ops)
    coded = {name: _coded(ops[column]) for name, column in TEXTS.items()} | {"module": _module_paths(ops)}
    lines = source_lines(ops)
    coded["source"] = _named(lines.codes, short_sources(lines.values.tolist()))
    columns: dict[str, npt.NDArray[Any]] = {"parent": _parents(ops, track), "track": track, **_numbers(ops)}
    columns |= {name: codes for name, (codes, _) in coded.items()}
    return {
        "title": known.title,
        "count": len(ops),
        "complete": trace.complete,
        "strings": {name: texts for name, (_, texts) in coded.items()},
        "tracks": names,
        "columns": {name: values.astype(values.dtype.newbyteorder("<")).tobytes() for name, values in columns.items()},
        "memory": _memory(trace),
        "repeats": _repeats(ops),
        "notes": [*([f"INCOMPLETE: {known.incomplete}"] if known.incomplete else []), *known.notes],
    }


def column(state: State, name: str) -> npt.NDArray[Any]:
    """Returns one column of a state as an array."""
    return np.frombuffer(state["columns"][name], "<f8" if name in NUMBERS else "<i4")


def _numbers(ops: pd.DataFrame) -> dict[str, npt.NDArray[np.float64]]:
    numbers = {name: ops[column].to_numpy(np.float64, na_value=np.nan) for name, column in NUMBERS.items()}
    return {name: np.nan_to_num(values) if name in TIMES else values for name, values in numbers.items()}


def _coded(values: pd.Series) -> tuple[Ints, list[str]]:
    codes, different = pd.factorize(values)
    return _named(codes, [str(text) for text in different])


def _module_paths(ops: pd.DataFrame) -> tuple[Ints, list[str]]:
    """Returns paths that start with the model's name, so that parts of different models stay apart."""
    model_codes, models = pd.factorize(ops["model"])
    path_codes, paths = pd.factorize(ops["module"])
    span = len(paths)
    # factorize takes NaN for missing.
    codes, pairs = pd.factorize(np.where(path_codes < 0, np.nan, (model_codes + 1) * span + path_codes))
    different = [divmod(int(pair), span) for pair in pairs]
    parts = [(models[model - 1] if model else "", paths[path]) for model, path in different]
    return _named(codes, [".".join(filter(None, names)) for names in parts])


def _repeats(ops: pd.DataFrame) -> dict[str, str]:
    paths = {".".join(filter(None, path)): name for path, name in module_repeats(ops).items()}
    return {path: name for path, name in paths.items() if path == shown(path, NAME_LIMIT)}


def _named(codes: npt.NDArray[np.intp], names: list[str]) -> tuple[Ints, list[str]]:
    """Returns the codes and the names as shown, each once: names may become equal when they are cut."""
    code_of: dict[str, int] = {}
    new_codes = [code_of.setdefault(shown(name, NAME_LIMIT), len(code_of)) for name in names]
    return np.array([*new_codes, -1], np.int32)[codes], list(code_of)


def _tracks(ops: pd.DataFrame) -> tuple[list[dict[str, str]], Ints]:
    """Returns the tracks in order: threads by number, then streams of devices; and the track of each op."""
    is_device = (ops["level"] == "kernel").to_numpy(bool)
    threads, thread_of = np.unique(ops["thread"].to_numpy()[~is_device], return_inverse=True)
    names = [{"name": f"thread {thread}", "kind": "host"} for thread in threads]
    track = np.zeros(len(ops), np.int32)
    track[~is_device] = thread_of
    if is_device.any():
        streams = ops.loc[is_device, ["device", "stream"]].groupby(["device", "stream"], dropna=False)
        names += [{"name": _stream_name(*key), "kind": "device"} for key, _ in streams]
        track[is_device] = len(threads) + streams.ngroup().to_numpy()
    return names, track


def _stream_name(device: object, stream: object) -> str:
    name = shown(device) if isinstance(device, str) else "device"
    return name if pd.isna(stream) else f"{name} stream {stream}"  # type: ignore[call-overload]


def _parents(ops: pd.DataFrame, track: Ints) -> Ints:
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)
    is_known = (parent >= 0) & (parent < len(ops))
    is_same = is_known & (track[np.where(is_known, parent, 0)] == track) if len(ops) else is_known
    return np.where(is_same, parent, -1).astype(np.int32)


def _memory(trace: Trace) -> list[dict[str, Any]] | None:
    """Returns the bytes allocated over time, per device; null where memory was not recorded."""
    if "memory" not in trace.frames:
        return None
    memory = MEMORY.check(trace.frames["memory"]).dropna(subset=["allocated_bytes"])
    return [
        {
            "device": shown(str(device)),
            "time": events["time_us"].to_numpy("<f8").tobytes(),
            "allocated": events["allocated_bytes"].to_numpy("<f8").tobytes(),
        }
        for device, events in memory.groupby("device", sort=True)
    ]
