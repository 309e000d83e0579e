"""A flamegraph's state as one block of bytes for a page: whole numbers in byte planes, compressed.

`widgets/src/report/flame_state.js` unpacks it.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from nbkit.views.flame_data import TIMES, State, column
from nbkit.views.flame_difference import PER_US as VERDICT_PER_US
from nbkit.views.flame_difference import TYPES

Ints = npt.NDArray[np.int64]
HEADER_BYTES = 4
# Times are kept to the nanosecond.
PER_US = 1000


def payload(states: Mapping[str, State | None]) -> bytes:
    """The states (null ones too) by the name of their trait, as deflated bytes; the same for the same input.

    Inside: the length of the header, the header (JSON: the states without columns, and how each column is packed), and
    the packed columns one after the other. A state without strings is one `beside_ops`.
    """
    packed: list[bytes] = []
    header = {name: None if state is None else _outline(state, packed) for name, state in states.items()}
    text = json.dumps(header, separators=(",", ":")).encode()
    whole = len(text).to_bytes(HEADER_BYTES, "little") + text + b"".join(packed)
    return zlib.compress(whole, 9)


def beside_ops(state: State) -> State:
    """What is left of a state beside the block of `op_data` of the same trace: the rest follows from that."""
    rest = {name: value for name, value in state.items() if name not in ("columns", "strings")}
    return {**rest, "columns": {"track": state["columns"]["track"]}}


def _outline(state: State, packed: list[bytes]) -> dict[str, Any]:
    """The state as JSON data; its columns are appended to `packed` and described in their place."""
    if "views" in state:
        return {**state, "views": {name: _pack_view(view, packed) for name, view in state["views"].items()}}
    outline = {name: value for name, value in state.items() if name not in ("columns", "memory")}
    outline["columns"] = [_pack(*each, packed) for each in _whole_columns(state)]
    memory = state["memory"]
    outline["memory"] = None if memory is None else [_pack_memory(device, packed) for device in memory]
    return outline


def _whole_columns(state: State) -> Iterator[tuple[str, Ints, str, int]]:
    """Name, whole numbers from 0, way back to the values, and scale of each column; `parent` and `total` come early."""
    if "strings" in state:
        yield from _op_columns(state)
    yield from _codes(state, ("track",))


def _op_columns(state: State) -> Iterator[tuple[str, Ints, str, int]]:
    n_rows = state["count"]
    parent = column(state, "parent").astype(np.int64)
    yield "parent", np.where(parent < 0, 0, np.arange(n_rows) - parent), "rows_up", 1
    times = {name: np.rint(column(state, name) * PER_US).astype(np.int64) for name in TIMES}
    yield "start", _folded(np.diff(times["start"], prepend=0)), "running_sum", PER_US
    yield "total", _folded(times["total"]), "folded", PER_US
    has_parent = parent >= 0
    inside = np.bincount(parent[has_parent], times["total"][has_parent], n_rows).astype(np.int64)
    # Nearly always 0: self time is total time without that of the children.
    yield "self", _folded(times["self"] - times["total"] + inside), "above_rest", PER_US
    for name in ("device_self", "flops", "bytes"):
        scale = PER_US if name == "device_self" else 1
        values = column(state, name)
        yield (
            name,
            np.where(np.isnan(values), 0, np.rint(np.nan_to_num(values) * scale) + 1).astype(np.int64),
            "known",
            scale,
        )
    yield from _codes(state, ("op", "module", "phase", "level", "device", "source", "shapes"))


def _codes(state: State, names: Iterable[str]) -> Iterator[tuple[str, Ints, str, int]]:
    for name in names:
        yield name, column(state, name).astype(np.int64) + 1, "code", 1


def _pack_view(view: State, packed: list[bytes]) -> dict[str, Any]:
    """One view of the state of a difference."""
    packs = []
    for name, data in view["columns"].items():
        is_time = TYPES[name] == "<f8"
        scale = VERDICT_PER_US if is_time else 1
        values = np.rint(np.frombuffer(data, TYPES[name]) * scale).astype(np.int64)
        steps = values if is_time else np.diff(values, prepend=0)
        packs.append(_pack(name, _folded(steps), "folded" if is_time else "running_sum", scale, packed))
    return {"count": view["count"], "columns": packs}


def _pack_memory(device: Mapping[str, Any], packed: list[bytes]) -> dict[str, Any]:
    time, allocated = (np.frombuffer(device[name], "<f8") for name in ("time", "allocated"))
    times, sizes = np.rint(time * PER_US).astype(np.int64), allocated.astype(np.int64)
    packs = [
        _pack("time", _folded(np.diff(times, prepend=0)), "running_sum", PER_US, packed),
        _pack("allocated", _folded(np.diff(sizes, prepend=0)), "running_sum", 1, packed),
    ]
    return {"device": device["device"], "count": len(times), "columns": packs}


def _folded(values: Ints) -> Ints:
    """Whole numbers from 0 for positive and negative ones: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return (values << 1) ^ (values >> 63)


def _pack(name: str, values: Ints, way: str, scale: int, packed: list[bytes]) -> list[Any]:
    """Append the lowest bytes of all values, then the next ones, as many as are needed; name, way, scale and width."""
    width = max((int(values.max(initial=0)).bit_length() + 7) // 8, 1)
    planes = values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T
    packed.append(np.ascontiguousarray(planes).tobytes())
    return [name, way, scale, width]
