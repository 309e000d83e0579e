"""Which memory a tensor stands on, and which outputs wrote to theirs; an op that only made a view of it did not."""

import numpy as np
import numpy.typing as npt
import pandas as pd


def memory_of(tensors: pd.DataFrame) -> pd.Series:
    """A number per row of tensors that views share; a tensor without a storage of its own is told by its tensor_id."""
    return tensors["storage_id"].fillna(-1 - tensors["tensor_id"]).astype("int64")


def is_write(tensors: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether a row is an output that its op wrote to: no view, which is another tensor on the storage of an input."""
    is_output = (tensors["role"] == "output").to_numpy(bool)
    op_ids, tensor_ids, memory = tensors["op_id"], tensors["tensor_id"], memory_of(tensors)
    read = pd.MultiIndex.from_arrays([op_ids[~is_output], memory[~is_output]])
    given = pd.MultiIndex.from_arrays([op_ids[~is_output], tensor_ids[~is_output]])
    is_alias = pd.MultiIndex.from_arrays([op_ids, memory]).isin(read)
    is_given = pd.MultiIndex.from_arrays([op_ids, tensor_ids]).isin(given)
    return np.asarray(is_output & ~(is_alias & ~is_given))
