"""Splits memory over time by what it is for, and a step by its phases."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pandas as pd

from nbkit.schema import MEMORY, OPS, STORAGES
from nbkit.schema.cost import STORAGE_KINDS

# A stretch shorter than this share of the ops belongs to what is around it.
SHORTEST = 0.01
PHASES = ("forward", "backward", "optimizer")
# Kinds of memory of a measured step: by the phase that allocated it, and whether that freed it.
BEFORE, TEMPORARY = "held before", "temporary"
LIFETIMES = (BEFORE, *(f"kept from {phase}" for phase in (*PHASES, "other")), TEMPORARY)


def memory_by_kind(memory: pd.DataFrame, storages: pd.DataFrame) -> pd.DataFrame:
    """Returns per event of `memory`: device, op_id (null before the step), allocated_bytes, and bytes by kind.

    A column is named as its kind in `storages`, in the order of STORAGE_KINDS; kinds that the step does not have are
    left out. Memory of unknown kind is not in any of them.
    """
    memory, storages = MEMORY.check(memory), STORAGES.check(storages)
    kinds = memory["allocation_id"].astype("float64").map(storages.set_index("allocation_id")["kind"])
    return _sums(memory, kinds, STORAGE_KINDS)


def memory_by_lifetime(memory: pd.DataFrame, ops: pd.DataFrame) -> pd.DataFrame:
    """Returns per event of `memory` of a measured step what memory_by_kind does, with the kinds of LIFETIMES.

    Memory that is freed in the phase that allocated it is temporary, other memory is kept from its phase. What was held
    before is what is left of allocated_bytes; where only that is known which the recording frees, it is that. An event
    outside forward, backward and optimizer belongs to the phase before it.
    """
    memory = MEMORY.check(memory)
    phases = memory["op_id"].astype("float64").map(OPS.check(ops).set_index("op_id")["phase"])
    phases = phases.where(phases.isin(PHASES)).ffill().fillna("other")
    run = (phases != phases.shift()).cumsum()
    is_allocation = memory["delta_bytes"] > 0
    frees = memory[~is_allocation].dropna(subset=["allocation_id"])
    ids = memory["allocation_id"].astype("float64")
    freed = _of_allocations(ids, run[frees.index])
    kinds = ("kept from " + phases).where(freed.isna() | (freed != run), TEMPORARY)[is_allocation]
    kinds = _of_allocations(ids, kinds)
    sums = _sums(memory, kinds, LIFETIMES)
    rest = sums["allocated_bytes"].astype("int64") - sums.iloc[:, 3:].sum(axis=1)
    before = rest - rest.groupby(sums["device"]).transform("min").clip(upper=0)
    if before.any():
        sums.insert(3, BEFORE, before)
    return sums


def _of_allocations(ids: pd.Series, values: pd.Series) -> pd.Series:
    """Returns per event the value of its allocation; the first, where a file has several under one id."""
    known = values.set_axis(ids[values.index])
    return ids.map(known[~known.index.duplicated()])


def _sums(memory: pd.DataFrame, kinds: pd.Series, known: Iterable[str]) -> pd.DataFrame:
    names = [*known]
    codes, changes = pd.Categorical(kinds, names).codes, memory["delta_bytes"].to_numpy()
    used = np.unique(codes[codes >= 0]).tolist()
    deltas = pd.DataFrame({names[code]: np.where(codes == code, changes, 0) for code in used}, memory.index)
    sums = deltas.groupby(memory["device"], sort=False).cumsum() if used else deltas
    return memory[["device", "op_id", "allocated_bytes"]].join(sums.astype("int64"))


def phase_spans(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns the phases of a step in order: phase, first_op_id, last_op_id; a short one joins the one before it."""
    ops = OPS.check(ops)
    phases = ops["phase"].to_numpy(dtype=object)
    starts = np.flatnonzero(phases[1:] != phases[:-1]) + 1 if len(ops) else np.zeros(0, np.int64)
    bounds = [0, *starts.tolist(), len(ops)] if len(ops) else [0]
    spans: list[list[object]] = []
    for first, end in pairwise(bounds):
        is_short = end - first < SHORTEST * len(ops)
        if spans and (is_short or spans[-1][0] == phases[first]):
            spans[-1][2] = end - 1
        else:
            spans.append([phases[first], first, end - 1])
    return pd.DataFrame(spans, columns=["phase", "first_op_id", "last_op_id"])
