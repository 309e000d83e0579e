"""Turns events into the frames `ops` and `memory`."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import MEMORY as MEMORY_TABLE
from nbkit.schema import OPS, TEXT, nullable
from nbkit.schema.recording import RAISED
from nbkit.timeline import names
from nbkit.timeline.computing import handed_on, raised, stopped
from nbkit.timeline.events import ABSENT, HOST, KERNEL, MEMORY, MODULE, RUNTIME, Events, Ints, Texts
from nbkit.timeline.links import PHASES, Links, launches, link
from nbkit.timeline.nesting import call_order, inherited, overlaps, self_times, subtree_sums

UNKNOWN = (ABSENT, 0)  # no address
WORK, FLOPS = "work", "flops"
FIXED_LEVELS = {MODULE: "module", RUNTIME: "runtime", KERNEL: "kernel"}


@dataclass(frozen=True)
class Timeline:
    """Holds the frames of a timeline; `memory` is None where no allocation was recorded.

    `communication` is that of the events, by op_id.
    """

    ops: pd.DataFrame
    memory: pd.DataFrame | None
    communication: Sequence[str | None]


def timeline(events: Events) -> Timeline:
    """Returns the frames of the events, which may stand in any order; their start counts from `origin_ns`."""
    laid = laid_out(events.at(call_order(starts(events), events.duration_ns)))
    memory = memory_frame(laid.events, laid.op_id[laid.links.parent], laid.start_us)
    return Timeline(laid.ops, memory, laid.communication)


@dataclass(frozen=True)
class LaidOut:
    """Holds events in call order, what they belong to, and their rows of `ops`."""

    events: Events
    links: Links
    rows: Ints  # the events that are rows, in order
    op_id: Ints  # of each event, -1 for one that is no row; the last entry answers for -1
    start_us: npt.NDArray[np.float64]
    ops: pd.DataFrame

    @property
    def communication(self) -> list[str | None]:
        """Returns what the file tells of the collective that each row of `ops` is."""
        told = self.events.texts("communication")
        return [told[row] for row in self.rows.tolist()]


def laid_out(events: Events, known: Collection[str] = ()) -> LaidOut:
    """Returns the rows of events that stand in call order already.

    `known` tells of events that are a part of a recording what others have: WORK on devices, FLOPS.
    """
    links = link(events)
    rows = np.flatnonzero(events.kind != MEMORY)
    op_id = np.full(len(events) + 1, ABSENT, dtype=np.int64)
    op_id[rows] = np.arange(len(rows))
    start_us = (events.start_ns - origin(events)) / 1e3
    return LaidOut(events, links, rows, op_id, start_us, _ops(events, links, rows, op_id, start_us, known))


def starts(events: Events) -> Ints:
    """Returns what the events are ordered by: their start, of device work just after its launch at the earliest.

    The clock of a device may run ahead of the host's by some microseconds.
    """
    start = events.start_ns * 2  # room for "just after"
    work = np.flatnonzero(events.kind == KERNEL)
    launch = launches(events, work)
    known = launch >= 0
    start[work[known]] = np.maximum(start[work[known]], start[launch[known]] + 1)
    return start


def origin(events: Events) -> int:
    """Returns the moment that start_us counts from, in ns."""
    if events.origin_ns is not None:
        return events.origin_ns
    return int(events.start_ns[0]) if len(events) else 0


def _ops(
    events: Events,
    links: Links,
    rows: Ints,
    op_id: Ints,
    start_us: npt.NDArray[np.float64],
    known: Collection[str],
) -> pd.DataFrame:
    ops, levels = _named(events)
    of_module = {name: _owned(events, name, links.owner) for name in ("model", "module")}
    calls = np.append(events.integers("module_call"), ABSENT)[links.owner]
    total_device, self_device = _device_times(events, links, WORK in known)
    columns: dict[str, Any] = {
        "parent_id": nullable(op_id[links.parent]),
        "level": _texts(levels),
        "op": _texts(ops),
        **{name: _texts(values) for name, values in of_module.items()},
        "module_call": nullable(calls),
        "phase": pd.array(PHASES, dtype=TEXT).take(links.phase),
        "step": _steps(events),
        "forward_op_id": nullable(op_id[links.forward]),
        "device": _texts(_devices(events, links)),
        "stream": nullable(events.integers("stream")),
        "thread": _threads(events, links),
        "start_us": start_us,
        "total_time_us": events.duration_ns / 1e3,
        "self_time_us": _self_times(events, links) / 1e3,
        "total_device_time_us": total_device,
        "self_device_time_us": self_device,
        "flops": nullable(_flops(events, links, FLOPS in known)),
        "size_bytes": nullable(np.where(events.kind == MEMORY, ABSENT, events.integers("size_bytes"))),
        "group": _texts(events.texts("group")),
        "status": _texts([RAISED if has_raised else None for has_raised in raised(events, links).tolist()]),
        **{name: _texts(events.texts(name)) for name in ("input_shapes", "input_dtypes", "input_strides", "arguments")},
        **{name: _texts(values) for name, values in _sources(events, links).items()},
    }
    chosen = {name: column[rows] for name, column in columns.items()}
    return OPS.frame({"op_id": np.arange(len(rows)), **chosen})


def _texts(values: Sequence[str | None]) -> pd.api.extensions.ExtensionArray:
    """Returns a text column, built over the few different texts: a frame of a million rows has some thousands."""
    if values.count(None) == len(values):
        nothing: pd.api.extensions.ExtensionArray = pd.array([None], dtype=TEXT)
        return nothing.take(np.zeros(len(values), dtype=np.intp))
    codes, different = pd.factorize(np.array(values, dtype=object))
    known: pd.api.extensions.ExtensionArray = pd.array([*different.tolist(), None], dtype=TEXT)
    return known.take(np.asarray(codes, dtype=np.intp))  # -1 takes the last, the null


def _named(events: Events) -> tuple[list[str], list[str]]:
    """Returns `op` and `level` of each event."""
    codes, different = events.name_codes
    overloads, overload_names = pd.factorize(np.array(events.texts("overload"), dtype=object))
    texts = [*overload_names, None]
    numbers = (events.kind, codes, overloads, events.integers("block"))
    keys, kinds = pd.factorize(pd.MultiIndex.from_arrays(numbers))
    pairs = [_op_and_level(kind, different[name], texts[overload], block) for kind, name, overload, block in kinds]
    ops, levels = ([pair[at] for pair in pairs] for at in (0, 1))
    return [ops[key] for key in keys.tolist()], [levels[key] for key in keys.tolist()]


def _op_and_level(kind: int, name: str, overload: str | None, block: int) -> tuple[str, str]:
    if fixed := FIXED_LEVELS.get(kind):
        return name, fixed
    return names.block_and_level(name) if block == 1 else names.op_and_level(name, overload)


def _owned(events: Events, name: str, owner: Ints) -> list[str | None]:
    values = [*events.texts(name), None]
    return [values[row] for row in owner.tolist()]


def _sources(events: Events, links: Links) -> dict[str, Texts]:
    """Returns the source line of each event: its own, else that of the call around it; and the user's own above it.

    A backward op that has none, and none around it in its node, has that of its forward op.
    """
    lines = {name: events.texts(name) for name in ("source", "own_source")}
    if events.source is None:
        return lines
    has_line = np.array([line is not None for line in events.source], dtype=bool)
    row = inherited(links.parent, links.levels, has_line)
    is_forward_s = (links.forward >= 0) & (np.append(links.forward, ABSENT)[row] < 0)
    row = np.where(is_forward_s & (row[links.forward] >= 0), row[links.forward], row)
    return {name: [texts[at] if at >= 0 else None for at in row.tolist()] for name, texts in lines.items()}


def _flops(events: Events, links: Links, are_known: bool) -> Ints:
    """Returns the FLOPs of each event; an op inside an op of known FLOPs is not counted again."""
    flops = events.integers("flops")
    is_known = flops > 0
    if not is_known.any() and not are_known:
        return flops
    is_known &= ~stopped(events, links)
    is_known &= ~handed_on(events, links, is_known)
    counted_above = np.append(inherited(links.parent, links.levels, is_known), ABSENT)[links.parent] >= 0
    return np.where(is_known & ~counted_above, flops, ABSENT)


def _steps(events: Events) -> Ints:
    """Returns how many optimizer steps had ended before each event."""
    return np.searchsorted(step_ends(events), events.start_ns, side="right").astype(np.int64)


def step_ends(events: Events) -> Ints:
    """Returns when each optimizer step ended, in ns, in order."""
    return np.sort((events.start_ns + events.duration_ns)[events.named(names.is_optimizer_step)])


def _devices(events: Events, links: Links) -> Sequence[str | None]:
    """Returns the device of each event: its own, for an op that launched work that of the work, else the host's."""
    device = [
        known or ("cpu" if kind in (HOST, MODULE) else None)
        for known, kind in zip(events.texts("device"), events.kind.tolist(), strict=True)
    ]
    takes = events.is_dispatcher_call | (events.kind == RUNTIME)
    for row in np.flatnonzero(events.kind == KERNEL)[::-1].tolist():
        above = int(links.parent[row])
        while above >= 0 and takes[above]:
            device[above] = device[row]
            above = int(links.parent[above])
    return device


def _threads(events: Events, links: Links) -> Ints:
    """Returns threads numbered in order of appearance, the main one 0."""
    codes, _ = pd.factorize(np.concatenate([[main_thread(events)], own_threads(events, links)]))
    return np.asarray(codes[1:], dtype=np.int64)


def main_thread(events: Events) -> int:
    """Returns the thread that is number 0."""
    host = events.thread[events.kind != KERNEL]
    return events.main_thread if events.main_thread is not None else (int(host[0]) if len(host) else 0)


def own_threads(events: Events, links: Links) -> Ints:
    """Returns the thread of each event; device work has that which launched it, the main one where none is known."""
    thread = events.thread.copy()
    work = np.flatnonzero((events.kind == KERNEL) & (links.parent >= 0))
    thread[work] = thread[links.parent[work]]
    loose = (events.kind == KERNEL) & (links.parent < 0)
    thread[loose] = main_thread(events)
    return thread


def _self_times(events: Events, links: Links) -> Ints:
    """Returns self time of each event in ns; device work and instants take nothing from the call around them."""
    aside = np.isin(events.kind, (KERNEL, MEMORY))
    parent = np.where(aside, ABSENT, links.parent)
    host = np.flatnonzero(~aside)
    position = np.full(len(events) + 1, ABSENT, dtype=np.int64)  # the last entry answers for -1
    position[host] = np.arange(len(host))
    start, more = events.start_ns[host], np.zeros(len(events), dtype=np.int64)
    more[host] = overlaps(position[parent[host]], events.thread[host], start, start + events.duration_ns[host])
    return self_times(parent, events.duration_ns, more)


def _device_times(
    events: Events, links: Links, is_known: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Returns total_device_time_us and self_device_time_us: a kernel's time is that of the op around its launch."""
    total, own = np.full(len(events), np.nan), np.full(len(events), np.nan)
    work = np.flatnonzero(events.kind == KERNEL)
    if not len(work) and not is_known:
        return total, own
    spent = np.zeros(len(events))
    spent[work] = events.duration_ns[work] / 1e3
    above = links.parent[work]
    launched = np.where((above >= 0) & (events.kind[above] == RUNTIME), links.parent[above], above)
    counts = np.isin(events.kind, (HOST, MODULE))
    own[counts] = 0.0
    known = launched >= 0
    np.add.at(own, launched[known], spent[work[known]])
    sums = subtree_sums(links.parent, links.levels, spent)
    total[counts | (events.kind == KERNEL)] = sums[counts | (events.kind == KERNEL)]
    return total, own


def memory_frame(events: Events, op_id: Ints, time_us: npt.NDArray[np.float64]) -> pd.DataFrame | None:
    """Returns allocations and frees in order of time, if there are any; `op_id` and `time_us` are the events'."""
    rows = np.flatnonzero(events.kind == MEMORY)
    if not len(rows):
        return None
    devices = [events.texts("device")[row] for row in rows.tolist()]
    delta = events.integers("size_bytes")[rows]
    ids, unseen = allocation_ids(events.integers("address")[rows].tolist(), delta.tolist(), devices)
    allocated = _allocated(events.integers("allocated_bytes")[rows], delta - unseen, devices)
    return MEMORY_TABLE.frame(
        {
            "op_id": nullable(op_id[rows]),
            "time_us": time_us[rows],
            "device": pd.array(devices, dtype=TEXT),
            "delta_bytes": delta,
            "allocated_bytes": allocated,
            "allocation_id": nullable(ids),
        }
    )


def _allocated(reported: Ints, delta: Ints, devices: list[str | None]) -> pd.arrays.IntegerArray:
    """Returns bytes on the device after each event: from its allocator; on the CPU, which has none, the sum so far."""
    on_host = np.array([device == "cpu" for device in devices], dtype=bool)
    allocated = reported.copy()
    allocated[on_host] = np.cumsum(delta[on_host])
    return pd.arrays.IntegerArray(allocated, (reported == ABSENT) & ~on_host)


def allocation_ids(addresses: list[int], deltas: list[int], devices: list[str | None]) -> tuple[Ints, Ints]:
    """Returns a number per allocation and its free (-1 for the free of what came before), and bytes freed unseen.

    What a thread frees that is not recorded shows once its address is allocated again.
    """
    live: dict[tuple[str | None, int], tuple[int, int]] = {}  # number and bytes
    ids, unseen, count = [], [], 0
    for address, delta, device in zip(addresses, deltas, devices, strict=True):
        number, size_bytes = live.pop((device, address), (ABSENT, 0))
        if delta > 0:
            number = count
            count += 1
            if address not in UNKNOWN:
                live[device, address] = number, delta
        ids.append(number)
        unseen.append(size_bytes if delta > 0 else 0)
    return np.array(ids, dtype=np.int64), np.array(unseen, dtype=np.int64)
