"""Says which tensors share memory, and which outputs their op wrote, not only viewed."""

import numpy as np
import numpy.typing as npt
import pandas as pd


def memory_of(tensors: pd.DataFrame) -> pd.Series:
    """Returns a number per row of tensors, shared by views; a tensor without a storage of its own has its tensor_id."""
    return tensors["storage_id"].fillna(-1 - tensors["tensor_id"]).astype("int64")


def is_write(tensors: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Returns whether a row is an output that its op wrote to; a view, a new tensor on an input's storage, is not."""
    is_output = (tensors["role"] == "output").to_numpy(bool)
    op_ids, tensor_ids, memory = tensors["op_id"], tensors["tensor_id"], memory_of(tensors)
    read = pd.MultiIndex.from_arrays([op_ids[~is_output], memory[~is_output]])
    inputs = pd.MultiIndex.from_arrays([op_ids[~is_output], tensor_ids[~is_output]])
    is_alias = pd.MultiIndex.from_arrays([op_ids, memory]).isin(read)
    was_input = pd.MultiIndex.from_arrays([op_ids, tensor_ids]).isin(inputs)
    return np.asarray(is_output & ~(is_alias & ~was_input))
