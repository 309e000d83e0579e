"""Finds the calls that an earlier trace of the step found something wrong with, by op and number."""

import json

import pandas as pd

from nbkit.errors import OptionError
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace


def flagged_calls(trace: Trace) -> frozenset[tuple[str, int]]:
    """Returns (op, number of its call in the step) of each op with a mismatch or a finding. Raises OptionError."""
    frames = checked_trace(trace, "only").frames
    if "diffs" not in frames and "findings" not in frames:
        raise OptionError("only= takes a trace of opdiff or opcheck, and this one has neither diffs nor findings.")
    if trace.meta.get("filtered_ops"):
        raise OptionError(
            "only= needs to count the calls of each op, and its trace was recorded with filters; record it without."
        )
    flagged: set[int] = set()
    if "diffs" in frames:
        flagged |= set(frames["diffs"].loc[~frames["diffs"]["status"].isin(HARMLESS), "op_id"])
    if "findings" in frames:
        flagged |= {op_id for text in frames["findings"]["evidence"] for op_id in json.loads(text).get("op_ids", ())}
    ops = frames["ops"]
    aten = ops[ops["level"] == "aten"]
    numbers = pd.Series(aten.groupby("op", sort=False).cumcount().to_numpy(), index=aten["op_id"])
    return frozenset((aten["op"].loc[op_id], int(numbers[op_id])) for op_id in flagged if op_id in numbers.index)


def ran_under_a_mode(trace: Trace) -> bool:
    """Returns whether a step was recorded under a dispatch mode: there autograd adds gradients by other calls."""
    return "diffs" in trace.frames or trace.meta.get("recorder") == "python"
