"""Says which op made a tensor, which ops read it, and which backward op belongs to which forward op."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import OPS
from nbkit.step.step import Step

Ids = npt.NDArray[np.int64]


def producers(step: Step, op_ids: Ids) -> Ids:
    """Returns the ops outside a group that made what an op of it reads, in the order of these inputs."""
    rows = np.flatnonzero(~step.is_output & np.isin(step.op_ids, op_ids))
    makers = step.makers[rows]
    found = step.op_ids[makers[makers >= 0]]
    return found[~np.isin(found, op_ids)]


def consumers(step: Step, op_ids: Ids) -> Ids:
    """Returns the ops outside a group that read what an op of it made, in call order."""
    rows = np.flatnonzero(~step.is_output & (step.makers >= 0))
    readers = step.op_ids[rows]
    return readers[np.isin(step.op_ids[step.makers[rows]], op_ids) & ~np.isin(readers, op_ids)]


def with_children(ops: pd.DataFrame, op_id: int) -> Ids:
    """Returns the op and all ops called below it, in call order."""
    parent = OPS.check(ops)["parent_id"].to_numpy(np.int64, na_value=-1)
    levels = [np.array([op_id])]
    # A child is called after its parent, so rows before the op need no look.
    while len(levels[-1]):
        levels.append(np.flatnonzero(np.isin(parent[op_id:], levels[-1])) + op_id)
    return np.sort(np.concatenate(levels))


def forward_ops(ops: pd.DataFrame, op_ids: Ids) -> Ids:
    """Returns the forward ops whose gradients a group of backward ops computes."""
    return np.unique(ops["forward_op_id"].iloc[op_ids].dropna().to_numpy(np.int64))


def backward_ops(ops: pd.DataFrame, op_ids: Ids) -> Ids:
    """Returns the backward ops that compute gradients of a group of forward ops."""
    return np.flatnonzero(np.isin(ops["forward_op_id"].to_numpy(np.int64, na_value=-1), op_ids))
