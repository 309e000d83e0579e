"""Finds where the inputs of an op came from: the ops that made them, and the ops before those."""

import pandas as pd

from nbkit.schema import table
from nbkit.step.step import Step
from nbkit.trace.checks import checked_op_id, checked_trace
from nbkit.trace.trace import Trace, step_of

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
    recorded = step_of(trace)
    distance = {op_id: 0}
    frontier = [op_id]
    for step in range(1, depth + 1):
        new = {writer for op in frontier for writer in _writers(recorded, op)} - distance.keys()
        distance |= dict.fromkeys(sorted(new, reverse=True), step)
        frontier = sorted(new)
    del distance[op_id]
    rows = recorded.ops.iloc[list(distance)].reset_index(drop=True)
    columns = {name: rows[name].array for name in ("op", "module", "phase", "source")}
    return PRODUCERS.frame({"op_id": list(distance), "distance": list(distance.values()), **columns})


def _writers(step: Step, op_id: int) -> set[int]:
    """Returns the last op before `op_id` that wrote to each of its inputs."""
    rows = step.rows(op_id)
    writers = step.writers[rows[~step.is_output[rows]]]
    return set(step.op_ids[writers[writers >= 0]].tolist())
