"""Saves the inputs, outputs and surroundings of chosen calls of a step in a folder (opcapture)."""

import json
from math import inf
from pathlib import Path
from typing import Unpack

import pandas as pd

from nbkit.capture.calls.parameters import Parameters, checked_parameters
from nbkit.capture.operators.capturing import MAX_BYTES, Capturing
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.scope.filters import CallFilters, with_filters
from nbkit.errors import OptionError
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.trace.checks import checked_trace, is_number
from nbkit.trace.trace import Trace


@with_filters
class opcapture(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Saves chosen calls of a step in a folder, as a context manager, for opreplay; gives a Trace with `captures`.

    A record holds what the op read from before it ran, in-place changes included, what it returned and wrote, and what
    else decides its result: arguments, strides, aliases and storage offsets, the state of the generator that it draws
    from, gradient mode, number of threads. Forward, backward and optimizer ops are all calls of their own, so that the
    gradient of each argument is an output of the backward op. Memory that several tensors share is stored once, and so
    is memory that is read again unchanged. Memory that decides nothing is not stored: what views look at, what `copy_`,
    `fill_` and `out=` overwrite, what `empty` returns.

    The folder has values in safetensors and all else in JSON (see nbkit/trace/calls/layout.py). Records are written
    while the step runs: after a crash it holds all but those of the last second, whole. Calls that are not saved are
    counted in `meta["skipped"]` with the reason.

    Args:
        folder: where to save; a folder of captured calls that has this name is renamed: NAME-1, NAME-2, ...
        **filters: those of CallFilters.
        only: a trace of the same step by opdiff or opcheck, or the folder of one: save only the calls that it found
            something wrong with.
        parameters: a model, or its state_dict, whose parameters the folder names in place of their values, until an op
            writes to them; give them to opreplay, too.
        replace: delete captured calls that are in the folder; else they keep that other name, and a note says so.
        max_bytes: how many bytes of values and records to save, beside what names them; from the first call that does
            not fit on, no more are saved.
        name: what the trace is called where it is shown.

    Raises:
        PatternError, OptionError, TraceError: before anything runs.
    """

    verb = "opcapture"

    def __init__(
        self,
        folder: str | Path,
        *,
        only: str | Path | Trace | None = None,
        parameters: Parameters | None = None,
        replace: bool = False,
        max_bytes: int = MAX_BYTES,
        name: str | None = None,
        **filters: Unpack[CallFilters],
    ) -> None:
        if not isinstance(folder, str | Path) or not str(folder):
            raise OptionError(
                f"folder must be a path, got {folder!r}; give the folder that the calls are to be saved in."
            )
        if not is_number(max_bytes) or not 0 < max_bytes < inf:
            raise OptionError(f"max_bytes must be a size, got {max_bytes!r}; give a number of bytes above 0.")
        if replace not in (True, False):
            raise OptionError(f"replace must be True or False, got {replace!r}.")
        capturing = Capturing(Path(folder), filters)
        capturing.replaces = bool(replace)
        if only is not None:
            flagged = Trace.load(only) if isinstance(only, str | Path) else only
            capturing.only, capturing.intercepts = flagged_calls(flagged), ran_under_a_mode(flagged)
        capturing.max_bytes = int(max_bytes)
        checked_parameters(parameters)
        capturing.parameters = parameters
        super().__init__(capturing, name=name)


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
