"""Joins the tensors of a trace with the ops that read or made them."""

from collections.abc import Sequence

import pandas as pd

from nbkit.errors import OptionError, nearest
from nbkit.schema import OPS, TENSORS
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace

OF_OPS = ("op", "phase", "model", "module", "step", "source")


def tensors_with_ops(trace: Trace, columns: Sequence[str] = OF_OPS) -> pd.DataFrame:
    """Returns the frame `tensors` of a trace, each row with what `ops` says of the op that reads or made the tensor.

    The rows are those of `tensors`, in their order; `columns` of `ops` stand behind `op_id`, the other columns of
    `tensors` behind those. `device` and `size_bytes`, which both frames have, are those of the tensor. It is made
    at each call: `tensors` itself has no such columns, so that a recording stays small.

    Args:
        trace: of a verb that records tensors: optrace, opcheck, opdiff or opaudit.
        columns: of `ops`, such as level, module_call, group or arguments.

    Raises:
        OptionError: for a column that `ops` does not have or that `tensors` has too, or a trace without tensors.
    """
    frames = checked_trace(trace).frames
    if "tensors" not in frames or "ops" not in frames:
        raise OptionError("The trace has no tensors; record it with nbkit.optrace(), opcheck(), opdiff() or opaudit().")
    if not isinstance(columns, str | list | tuple):
        raise OptionError(f"columns must be a name or a list of names, got {columns!r}.")
    names = [columns] if isinstance(columns, str) else list(dict.fromkeys(map(str, columns)))
    free = [name for name in OPS.frame().columns if name not in TENSORS.frame().columns]
    if unknown := [name for name in names if name not in free]:
        raise OptionError(f"columns has {unknown[0]!r}, which is no column of ops alone; {nearest(unknown[0], free)}")
    tensors, ops = frames["tensors"], frames["ops"]
    # op_id is the place of a row of ops.
    added = ops[names].iloc[tensors["op_id"].to_numpy()].set_axis(tensors.index)
    return pd.concat([tensors[["op_id"]], added, tensors.drop(columns="op_id")], axis=1)
