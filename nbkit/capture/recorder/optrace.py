"""optrace: record every op of a model step."""

from contextlib import AbstractContextManager, ExitStack, nullcontext
from threading import local
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Literal

import numpy as np
import pandas as pd

from nbkit.capture.frames.build import build, now_text, versions
from nbkit.capture.native.library import library
from nbkit.capture.recorder.dispatch_mode import Looker, OpMode
from nbkit.capture.recorder.function_mode import ApiMode
from nbkit.capture.recorder.gc_paused import uncollected
from nbkit.capture.recorder.overhead import call_costs_us, recorder_us
from nbkit.capture.recorder.recording import Recording
from nbkit.capture.recorder.selection import Selection
from nbkit.capture.recorder.statistics import Statistics
from nbkit.capture.step.compiled import CompiledRegions
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.capture.step.optimizer_steps import OptimizerSteps
from nbkit.capture.step.tracebacks import came_from_op, without_our_frames
from nbkit.errors import OptionError, nearest
from nbkit.patterns import Patterns
from nbkit.schema.message import message_values
from nbkit.trace.trace import Trace

VALUES = ("stats",)
_thread = local()  # .running: the recordings that this thread is in, outermost first


class optrace:  # noqa: N801  a context manager is named like the function it stands for
    """Context manager that records every op run inside it; gives a Trace, filled when it ends.

    API calls (`torch.nn.functional.linear`) and the aten ops below them, forward, backward and optimizer, with module
    path, source line, shapes, dtypes, strides, devices and dataflow. What runs inside computes the same bits as without
    it. After an exception the trace so far is kept, marked incomplete.

    Args:
        ops, exclude_ops: names of ops to keep or leave out: literal (`linear`, `aten.add`), globs (`*norm*`) or `re:`
            and a regular expression; one text with commas or a list. An API call brings the ops below it.
        modules, exclude_modules: likewise for module paths; a module brings all it holds.
        values: "stats" adds mean, std, min, max, norm, NaN and Inf counts of every tensor (slow: reads every value).
        name: what the trace is called in displays.

    Raises:
        PatternError, OptionError: before anything runs.

    Only the thread that enters it is recorded, and the threads autograd runs for it. Nested recordings each see all.
    """

    verb = "optrace"
    needs_python = False

    def __init__(
        self,
        *,
        ops: Patterns = None,
        exclude_ops: Patterns = None,
        modules: Patterns = None,
        exclude_modules: Patterns = None,
        values: Literal["stats"] | None = None,
        name: str | None = None,
    ) -> None:
        if values is not None and values not in VALUES:
            raise OptionError(f"values={values!r} is not known; {nearest(str(values), VALUES)}")
        self.selection = Selection(ops, exclude_ops, modules, exclude_modules)
        self.values = values
        self.name = name or self.verb
        self.trace: Trace | None = None

    def __enter__(self) -> Trace:
        if self.trace is not None:
            raise OptionError(f"This {self.verb} has been used already; make a new one for each recording.")
        # The native recorder neither reads values nor runs another verb below it.
        native = None if self.values or self.needs_python else library()
        call_costs_us(native)  # measured before the first recording, outside of all
        self.trace = Trace()
        recording = self.recording = Recording(native)
        self.statistics = Statistics(recording) if self.values == "stats" else None
        self.api = ApiMode(recording)
        self.modules = ModuleCalls(recording, self.api)
        optimizers = OptimizerSteps(recording, self.api)
        compiled = CompiledRegions(recording, self.api, self.modules)
        mode = OpMode(recording, self.statistics, optimizers.on_profiler_op, self._looking(recording))
        with ExitStack() as stack:
            stack.enter_context(self._below(recording))
            for part in (self.modules, optimizers, compiled):
                part.install()
                stack.callback(part.remove)
            stack.enter_context(self.api)
            stack.enter_context(mode)
            self.exits = stack.pop_all()
        self.ended = False
        self.running = vars(_thread).setdefault("running", [])
        self.running.append(self)
        recording.start = perf_counter_ns()
        return self.trace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.recording.end = perf_counter_ns()
        getters = self.api.getters
        self.ended = True
        is_outermost = self.running[0] is self
        # Modes are a stack: a recording that ends before one that began later takes its own away with that one's.
        removed = []
        while self.running and self.running[-1].ended:
            removed.append(self.running.pop())
            removed[-1].exits.close()
        from_op = error is not None and came_from_op(error, self.recording.failed_message)
        if error is not None and is_outermost:
            without_our_frames(error)
        with uncollected():
            self._fill(error, from_op, getters)
            for one in removed:
                one._forget()

    def _looking(self, recording: Recording) -> Looker | None:
        """What another verb has look at each op that the recorder runs."""
        return None

    def _below(self, recording: Recording) -> AbstractContextManager[object]:
        """What another verb runs below the recorder of aten ops."""
        return nullcontext()

    def _found(self, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
        """Frames and meta that another verb adds to the trace; `op_ids` holds one for every slot of recording.ops."""
        return {}, {}

    def _completed(
        self, frames: dict[str, pd.DataFrame], meta: dict[str, Any]
    ) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
        """The frames and meta of the trace, after a verb has put together what stands in several of them."""
        return frames, meta

    def _forget(self) -> None:
        """Let go of weak references and raw rows: of no use any more, and a kept optrace should weigh nothing."""
        vars(self.recording.registry).clear()
        del self.recording, self.statistics, self.api, self.modules, self.exits, self.running

    def _fill(self, error: BaseException | None, from_op: bool, getters: int) -> None:
        assert self.trace is not None
        recording = self.recording
        frames, built = build(recording, self.modules, self.statistics, self.selection, getters)
        failed, op_ids = built.pop("failed_op_id"), built.pop("op_ids")
        ops = frames["ops"]
        more_frames, more = self._found(ops, op_ids)
        meta: dict[str, Any] = {
            "verb": self.verb,
            "name": self.name,
            "created": now_text(),
            "complete": error is None,
            "error": None if error is None else describe_error(error, failed if from_op else None, ops),
            "versions": versions(),
            "wall_us": (recording.end - recording.start) / 1e3,
            "recorder": "python" if recording.native is None else "native",
            "recorder_us": recorder_us(recording),
            **built,
            **more,
            "notes": [*built["notes"], *more.get("notes", [])],
        }
        self.trace._fill(*self._completed({**frames, **more_frames}, meta))


def describe_error(error: BaseException, failed: int | None, ops: Any) -> dict[str, Any]:
    """What stopped the recorded code: type, message, and the op that raised it, if one did."""
    source = ops["source"].iloc[failed] if failed is not None else None
    return {
        "type": type(error).__name__,
        "message": str(error),
        "message_values": message_values(error.args[0]) if error.args else None,
        "op_id": failed,
        "source": source if isinstance(source, str) else None,
    }
