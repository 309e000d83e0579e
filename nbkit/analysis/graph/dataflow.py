"""Says which op made a tensor, which ops read it, and which backward op belongs to which forward op."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import OPS, TENSORS, nullable

Ids = npt.NDArray[np.int64]


def links(tensors: pd.DataFrame) -> pd.DataFrame:
    """Returns a row per input: op_id, position, tensor_id and producer_id, the last earlier op that returned it.

    producer_id is null where the tensor was there before the recording. An in-place op reads what the op before it
    made and is itself the producer for what follows.
    """
    is_output = (TENSORS.check(tensors)["role"] == "output").to_numpy(bool)
    outputs, inputs = tensors.loc[is_output], tensors.loc[~is_output]
    row = last_before(outputs, inputs, tensors["tensor_id"])
    producer = np.append(tensors["op_id"].to_numpy(), -1)[row]
    columns = inputs[["op_id", "position", "tensor_id"]].reset_index(drop=True)
    return columns.assign(producer_id=nullable(producer))


def last_before(made: pd.DataFrame, read: pd.DataFrame, key: pd.Series) -> Ids:
    """Returns for each row of `read` the last earlier op's row of `made` with the same key; -1 where there is none.

    Both are rows of one tensors frame, of which `key` holds a number per row; what comes back are rows of that frame.
    """
    span = max(int(frame["op_id"].max()) + 1 if len(frame) else 1 for frame in (made, read))
    keys = key.loc[made.index].to_numpy() * span + made["op_id"].to_numpy()
    order = np.argsort(keys, kind="stable")
    wanted = key.loc[read.index].to_numpy()
    before = np.searchsorted(keys[order], wanted * span + read["op_id"].to_numpy()) - 1
    is_made = (before >= 0) & (np.append(keys[order], -1)[before] // span == wanted)
    return np.where(is_made, np.append(made.index.to_numpy()[order], -1)[before], -1)


def producers(tensors: pd.DataFrame, op_ids: Ids) -> pd.DataFrame:
    """Returns links into a group of ops from outside it, in call order."""
    near = links(_touching(tensors, op_ids))
    is_inside = near["op_id"].isin(op_ids) & ~near["producer_id"].isin(op_ids)
    return near[is_inside & near["producer_id"].notna()].sort_values(["op_id", "position"], ignore_index=True)


def consumers(tensors: pd.DataFrame, op_ids: Ids) -> pd.DataFrame:
    """Returns links out of a group of ops to ops outside it, in call order."""
    near = links(_touching(tensors, op_ids))
    is_outside = near["producer_id"].isin(op_ids) & ~near["op_id"].isin(op_ids)
    return near[is_outside].sort_values(["op_id", "position"], ignore_index=True)


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


def _touching(tensors: pd.DataFrame, op_ids: Ids) -> pd.DataFrame:
    """Returns rows of all tensors that the ops read or make: all that their links need."""
    near = tensors.loc[np.isin(tensors["op_id"].to_numpy(), op_ids), "tensor_id"].unique()
    return tensors[np.isin(tensors["tensor_id"].to_numpy(), near)].reset_index(drop=True)
