"""Finds where the inputs of an op came from: the ops that made them, and the ops before those."""

import pandas as pd

from nbkit.analysis.graph.memory_writes import is_write, memory_of
from nbkit.schema import OPS, TENSORS, table
from nbkit.trace.checks import checked_op_id, checked_trace
from nbkit.trace.trace import Trace

PRODUCERS = table(
    "producers",
    "op that an op's inputs came from, nearest first",
    ("op_id", "int64", "the producing op"),
    ("distance", "int64", "how many ops it is away: 1 made an input of the op itself"),
    ("op", "str", "as in ops"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("source", "str", "as in ops"),
)


def producers(trace: Trace, op_id: int, depth: int = 3) -> pd.DataFrame:
    """Returns a frame of PRODUCERS: the aten ops of a trace that op `op_id` goes back to, up to `depth` ops away.

    The producer of an input is the last op before that wrote to its storage; an op that only made a view of it did not.
    Inputs that no recorded op wrote to (parameters, the batch) end the chain. Raises OptionError for an op_id that is
    not in the trace.
    """
    op_id = checked_op_id(checked_trace(trace), op_id)
    ops = OPS.check(trace.frames.get("ops", OPS.frame()))
    tensors = TENSORS.check(trace.frames.get("tensors", TENSORS.frame()))
    memory, is_written = memory_of(tensors), is_write(tensors)
    is_output = tensors["role"] == "output"
    writers = tensors[is_written].groupby(memory[is_written])["op_id"].apply(lambda new: sorted(set(new)))
    read = memory[~is_output].groupby(tensors["op_id"][~is_output]).agg(set)
    distance = {op_id: 0}
    frontier = [op_id]
    for step in range(1, depth + 1):
        new = {writer for op in frontier for writer in _writers(op, read, writers)} - distance.keys()
        distance |= dict.fromkeys(sorted(new, reverse=True), step)
        frontier = sorted(new)
    del distance[op_id]
    rows = ops.iloc[list(distance)].reset_index(drop=True)
    columns = {name: rows[name].array for name in ("op", "module", "phase", "source")}
    return PRODUCERS.frame({"op_id": list(distance), "distance": list(distance.values()), **columns})


def _writers(op_id: int, read: pd.Series, writers: pd.Series) -> set[int]:
    """Returns the last op before `op_id` that wrote to each of its inputs."""
    last = (max((op for op in writers.get(key, ()) if op < op_id), default=-1) for key in read.get(op_id, ()))
    return {op for op in last if op >= 0}
