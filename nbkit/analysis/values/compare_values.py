"""Compares the values of two recorded runs, op by op: where they begin to differ, and what only inherits it."""

import pandas as pd

from nbkit.divergence.side_by_side import comparable, first_beginning, notes_on, side_by_side
from nbkit.errors import OptionError
from nbkit.progress import Progress
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace, step_of


def compare_values(left: Trace, right: Trace) -> pd.DataFrame:
    """Returns a frame of ALIGNMENT: every aten op of two traces recorded with values="stats", in call order.

    Ops are aligned by phase, model, module path, name, shapes and parameters; between those by module and name
    whatever the overload; and last by what gives the same shapes there. What only one run has (casts, another kernel)
    keeps its row. It is a difference of the ops, not of values, as long as every result that both runs have agrees that
    comes of it and that no further op of its phase reads: outputs, gradients, updated parameters and states of an
    optimizer. What differs in between is then no pair.

    Where most ops of either run are in modules that the other one lacks, as of two implementations of one model, ops
    with the same values are pairs (evidence "values"), whatever their modules; results that differ in between mean
    nothing there, unless what comes of them differs to the end of both runs.

    Compared are the statistics of what each op reads and gives: it injects a difference if its results differ by more
    than its inputs and dtypes explain (see nbkit/divergence/spread.py), and inherits one that its inputs have already.
    Differences that leave all statistics as they are stay hidden.
    `attrs` of the frame: first_divergence (the first row at which a difference begins, as a dict with op_id,
    right_op_id, op, module, phase, source, errors and message; None if there is none) and notes, sentences that a view
    should show. Raises OptionError for a trace without statistics, and if the two share no op.
    """
    steps = step_of(checked_trace(left, "left")), step_of(checked_trace(right, "right"))
    with Progress(lambda: f"compare_values: {len(left.ops):,} and {len(right.ops):,} ops"):
        result = side_by_side(comparable(steps[0], "The left trace"), comparable(steps[1], "The right trace"))
    if not (result["action"] == "match").any():
        raise OptionError("The two traces share no op, so there is nothing to compare; give two runs of the same step.")
    result.attrs.update({"first_divergence": first_beginning(result), "notes": notes_on(result)})
    return result
