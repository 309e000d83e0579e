"""Defines what a verb adds to a recording: the hooks that the recorder calls."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.raw.recording import Recording
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.trace.trace import Trace

Frames = dict[str, pd.DataFrame]
Meta = dict[str, Any]


class Observer:
    """Watches the ops of one recording and adds frames to its trace; each hook here does nothing.

    The recorder calls below(), around() at the first call of each op, frames(), completed() and forget(), in this
    order, and with several observers each hook of all of them before the next hook.
    """

    # The counterpart of around() where torch's observer reports the ops, from below() on, in nbkit/capture/native.
    native: Any = None

    def is_around(self) -> bool:
        """Returns whether around() has to run each op, for which the recording takes a dispatch mode in Python."""
        return type(self).around is not Observer.around

    def below(self, recording: Recording, modules: ModuleCalls) -> AbstractContextManager[object]:
        """Begins with a recording; what comes back is entered below what records aten ops."""
        return nullcontext()

    def around(self, func: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        """Returns what runs each call of an op: `run`, or a function that calls it and sees its inputs and results."""
        return run

    def progress(self) -> str:
        """Returns what it has done so far, for the line of progress; another thread asks."""
        return ""

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        """Returns frames and meta to add, puts the rest on `trace`; `op_ids` holds one per slot of recording.ops."""
        return {}, {}

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        """Returns all frames and meta of the trace, after putting together what stands in several of them."""
        return frames, meta

    def forget(self) -> None:
        """Lets go of the recording and of all that was kept for it."""
