"""Splits memory over time by what it is for, and a step by its phases."""

from itertools import pairwise

import numpy as np
import pandas as pd

from nbkit.schema import MEMORY, OPS, STORAGES
from nbkit.schema.cost import STORAGE_KINDS

# A stretch shorter than this share of the ops belongs to what is around it.
SHORTEST = 0.01


def memory_by_kind(memory: pd.DataFrame, storages: pd.DataFrame) -> pd.DataFrame:
    """Returns per event of `memory`: device, op_id (null before the step), allocated_bytes, and bytes by kind.

    A column is named as its kind in `storages`, in the order of STORAGE_KINDS; kinds that the step does not have are
    left out. Memory of unknown kind is not in any of them.
    """
    memory, storages = MEMORY.check(memory), STORAGES.check(storages)
    kind_of = storages.set_index("allocation_id")["kind"]
    kinds = memory["allocation_id"].astype("float64").map(kind_of)
    names = [kind for kind in STORAGE_KINDS if (kinds == kind).any()]
    deltas = pd.DataFrame({name: memory["delta_bytes"].where((kinds == name).to_numpy(bool), 0) for name in names})
    sums = deltas.groupby(memory["device"], sort=False).cumsum() if names else deltas
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
