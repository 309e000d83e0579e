"""Times a step and its memory on the profiler's own clock (optime)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter_ns
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch._C._profiler import _RecordFunctionFast

from nbkit import units
from nbkit.capture.calibration import peaks_of_most
from nbkit.capture.frames.build import machine_text, now_text, versions
from nbkit.capture.frames.module_rows import modules_frame
from nbkit.capture.profiler.alternatives import measure
from nbkit.capture.profiler.api_ranges import ApiRanges
from nbkit.capture.profiler.collectives import Collectives
from nbkit.capture.profiler.compiled_graphs import CompiledGraphs
from nbkit.capture.profiler.kineto import Kineto, KinetoOptions, check_free, device_to_record, event_overhead_us
from nbkit.capture.profiler.kineto_events import before_the_end, read
from nbkit.capture.profiler.op_lines import OpLines
from nbkit.capture.profiler.own_work import without_own_work
from nbkit.capture.profiler.range_events import with_marks
from nbkit.capture.profiler.ranges import ROOT_MARK, Ranges
from nbkit.capture.profiler.repeated_runs import repeat_frames
from nbkit.capture.raw.running import TIMING, check_nesting, running
from nbkit.capture.recorder.recorder import describe_error
from nbkit.capture.step.compiled import CompiledRegions
from nbkit.capture.step.tracebacks import failed_at, without_our_frames
from nbkit.errors import OptionError
from nbkit.findings.time.rules import time_findings
from nbkit.progress import Progress
from nbkit.schema import LINES, MEMORY, MODULES, OPS
from nbkit.timeline import timeline
from nbkit.timeline.compiled import has_hidden_kernels
from nbkit.trace.trace import Trace

# Why a recording has no events.
ELSEWHERE = "nothing was recorded: the recording ended in another thread than the one it began in"
HIDDEN_KERNELS = (
    "A compiled region's fused kernels are no rows: their time is self time of the rows of the region. Each is a row "
    "where torch._inductor.config.cpp.enable_kernel_profile was True when the region was compiled."
)
# Of the median run, what of it may be in no call's median before that is said.
MOST_DELAYS = 0.05
TAKEN = "nothing was recorded: another profiler began inside the recording and took the events"


@dataclass
class Run:
    """Holds one recorded run of the step: its frames, and what is known about it."""

    frames: dict[str, pd.DataFrame]
    wall_us: float
    skipped: dict[str, int]
    notes: list[str]


class optime:  # noqa: N801  a context manager is named like the function it stands for
    """Times every op run inside it with torch.profiler's engine, as a context manager; gives a Trace, filled at exit.

    `trace.ops` holds modules, API calls, aten ops, autograd nodes and, on a device, driver calls and kernels, nested on
    one timeline, with self and total time on host and device; backward work has the module of its forward op. After
    an exception the trace so far is kept, marked incomplete.

    Args:
        memory: also record every allocation and free, in `trace.memory`.
        stacks: also record Python's calls of torch, with the source line of each (the most expensive option).
        shapes: also record shapes, dtypes and strides of inputs, other arguments, and the FLOPs of ops (see
            `register_flop_formula`).
        savings: also run what could replace slow parts (fused ops, other forms of an optimizer) on the recorded shapes,
            after the step, and say what it saves.
        device: "cpu" leaves an accelerator out; by default the one that is there is recorded.
        warmup, repeats: with `run(function)`: how often the step runs before, and how often it is recorded.
        name: what the trace is called where it is shown.

    Raises:
        OptionError: before anything runs; also when a profiler is running already, in this thread or another; at the
            end of a `with` block that was to be repeated.

    Only the thread that enters it is recorded, and the threads autograd runs for it. A profiler that the step starts
    itself takes all events: the trace then has none, and a note that says so.
    """

    verb = TIMING

    def __init__(
        self,
        *,
        memory: bool = False,
        stacks: bool = False,
        shapes: bool = False,
        savings: bool = False,
        device: str | torch.device | None = None,
        warmup: int = 0,
        repeats: int = 0,
        name: str | None = None,
    ) -> None:
        for option, value in (("warmup", warmup), ("repeats", repeats)):
            if not isinstance(value, int) or value < 0:
                raise OptionError(f"{option}={value!r} is not a count; give a whole number from 0 up.")
        # The profiler's engine takes nothing but True and False.
        self.options = KinetoOptions(bool(memory), bool(shapes or savings), device_to_record(device))
        self.measure = measure if savings else None
        self.stacks, self.warmup, self.repeats = stacks, warmup, repeats
        self.name = name or self.verb
        self.trace: Trace | None = None
        self.runs: list[Run] = []
        self.recording: KinetoRecording | None = None
        self.is_called_again = False

    def run(self, function: Callable[[], object]) -> Trace:
        """Returns the trace of `function()`, called `warmup` times without recording, then `repeats` times (once if 0).

        Raises OptionError for what cannot be called.
        """
        if not callable(function):
            raise OptionError(
                f"run() calls the step itself, and this is a {type(function).__name__}; give it a function, such as "
                f"run(lambda: model(ids))."
            )
        with self as trace:
            for _ in self.rounds():
                function()
        return trace

    def rounds(self) -> Iterator[int]:
        """Yields once per run of the step that is due, and switches the recording on and off around each."""
        self.is_called_again = True
        yield from range(self.warmup)
        for number in range(max(self.repeats, 1)):
            self.begin_run()
            yield self.warmup + number
            self.end_run()

    def begin_run(self) -> None:
        """Begins a run of the step: for callers that cannot put their step into a function or a loop over rounds()."""
        self.is_called_again = True
        if self.recording is None:
            self.recording = KinetoRecording(self.options, self.stacks)

    def end_run(self) -> None:
        """Ends the run that begin_run() began; what comes until the next one is not recorded."""
        recording, self.recording = self.recording, None
        if recording is not None:
            self.runs.append(recording.end())

    def __enter__(self) -> Trace:
        if self.trace is not None:
            raise OptionError("This optime has been used already; make a new one for each recording.")
        check_nesting(self.verb)
        check_free()
        self.overhead_us = event_overhead_us(
            self.options
        )  # measured before the first recording, which it also warms up
        self.trace = Trace()
        if not (self.warmup or self.repeats):
            self.recording = KinetoRecording(self.options, self.stacks)
        self.running = running()
        self.running.append(self)
        self.progress = Progress(self._progress, done=self._done).__enter__()
        return self.trace

    def _done(self) -> float | None:
        """Returns which part of the repeated runs is over; null while they warm up, and where there is one."""
        return len(self.runs) / self.repeats if self.repeats and self.runs and self in self.running else None

    def _progress(self) -> str:
        """Says how far it is; another thread asks, while the step runs."""
        if self not in self.running:
            return f"{self.verb}: reading what the profiler recorded"
        count = max(self.repeats, 1)
        return f"{self.verb}: run {min(len(self.runs) + 1, count)} of {count}" if self.repeats else self.verb

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.running.remove(self)
        try:
            self._end(error)
        finally:
            self.progress.__exit__(None, None, None)
            del self.progress  # it calls this object: a circle would keep the trace until the next full collection

    def _end(self, error: BaseException | None) -> None:
        finished = len(self.runs)
        self.end_run()
        if error is not None and finished:
            del self.runs[finished:]  # a run that broke off says nothing about the step's times
        own_failure = None if error is None else failed_at(error)
        if error is not None and own_failure is None:
            without_our_frames(error)
        self._fill(error, own_failure)
        if error is None and (self.warmup or self.repeats) and not self.is_called_again:
            raise OptionError("Nothing was recorded: a `with` block runs once; use nbkit.optime(repeats=N).run(step).")

    def _fill(self, error: BaseException | None, own_failure: str | None) -> None:
        assert self.trace is not None
        # A step that raised while it warmed up has left none.
        runs = self.runs or [Run({"ops": OPS.frame(), "modules": MODULES.frame()}, 0.0, {}, [])]
        shown, frames = repeat_frames([(run.frames, run.wall_us) for run in runs])
        run, ops = runs[shown], frames["ops"]
        # The step itself is the first row, as views show its time.
        whole_us = frames["timings"]["median_us"] if "timings" in frames else ops["total_time_us"]
        wall_us = float(whole_us.iloc[0]) if len(whole_us) else run.wall_us
        notes = [*dict.fromkeys(note for run in runs for note in run.notes), *_delays(ops, wall_us, len(runs))]
        meta: dict[str, Any] = {
            "verb": self.verb,
            "name": self.name,
            "created": now_text(),
            "complete": error is None,
            "error": None if error is None else describe_error(error, None, ops, own_failure),
            "versions": versions(),
            "machine": machine_text(),
            "wall_us": wall_us,
            "recorder_us": len(ops) * self.overhead_us,
            "devices": sorted(ops["device"].dropna().unique()),
            "skipped": run.skipped,
            "warmup": self.warmup,
            "repeats": len(self.runs) if self.repeats else 0,
            "notes": notes,
        }
        if peaks := peaks_of_most(frames["ops"]):
            meta["measured_device"] = peaks
        self.trace._fill({**frames, "findings": time_findings(frames, self.measure)}, meta)


def _delays(ops: pd.DataFrame, wall_us: float, runs: int) -> list[str]:
    """Says what of the median run no call's median explains, where that is much."""
    sum_us = float(ops["total_time_us"].iloc[0]) if runs > 1 and len(ops) else wall_us
    if sum_us >= (1 - MOST_DELAYS) * wall_us:
        return []
    return [
        f"Times of calls are medians over {runs} runs, and add up to {units.duration(sum_us)}; a run took "
        f"{units.duration(wall_us)}: the rest hit other calls in each run, as other processes do."
    ]


class KinetoRecording:
    """Keeps one recording on, from its making to end()."""

    def __init__(self, options: KinetoOptions, stacks: bool) -> None:
        self.options = options
        self.skipped: dict[str, int] = {}
        self.kineto = Kineto(options)
        self.api = ApiRanges()
        self.ranges = Ranges(self.api)
        self.collectives = Collectives()
        self.compiled = CompiledRegions(self, self.api, self.ranges)
        self.graphs = CompiledGraphs()
        self.lines = OpLines()
        self.result: Any = None
        with ExitStack() as ends:  # an interrupt in here leaves nothing on
            self.kineto.start()
            ends.callback(self._stop)
            for part in (self.ranges, self.collectives, self.graphs, self.compiled):
                ends.callback(part.remove)
                part.install()
            ends.callback(self.api.__exit__)
            if stacks:
                self.api.__enter__()
            self.root = _RecordFunctionFast(ROOT_MARK)
            self.start_ns = perf_counter_ns()
            self.root.__enter__()
            ends.callback(self.lines.remove)
            self.lines.install()
            self.ends = ends.pop_all()

    def _stop(self) -> None:
        self.result = self.kineto.stop()

    def end(self) -> Run:
        """Switches everything off and returns the frames of what was recorded."""
        self.stop()
        return self.read()

    def stop(self) -> None:
        """Switches everything off."""
        self.root.__exit__(None, None, None)
        self.wall_us = (perf_counter_ns() - self.start_ns) / 1e3
        self.ends.close()

    def read(self, own_work: np.ndarray | None = None) -> Run:
        """Returns the frames of what was recorded; `own_work` are spans of perf_counter_ns() to leave out, in order."""
        self.ranges.other_threads.say(self.skip)
        for reason, count in self.ranges.skipped.items():
            self.skip(reason, count)
        events = before_the_end(read(self.result, self.options, self.skip), ROOT_MARK)
        if own_work is not None and ROOT_MARK in events.name:
            inside = own_work[own_work[:, 0] >= self.start_ns]
            offset = int(events.start_ns[events.name.index(ROOT_MARK)]) - self.start_ns
            events = without_own_work(events, inside + offset)
            self.wall_us -= float((inside[:, 1] - inside[:, 0]).sum()) / 1e3
        self.result = None
        if ROOT_MARK not in events.name:
            self.kineto.notes[:] = [ELSEWHERE if self.kineto.is_lost else TAKEN]
        events = with_marks(events, self.ranges, self.api, self.collectives)
        has_compiled = bool(self.graphs.graphs)
        self.graphs.tell_sources(events)
        texts = self.lines.tell_sources(events)
        made = timeline(events)
        frames = {
            "ops": made.ops,
            "modules": modules_frame(self.ranges.modules, self.ranges.modules.roots.labels()),
            "lines": LINES.frame({"source": [*texts], "text": [*texts.values()]}),
        }
        if self.options.memory:
            frames["memory"] = MEMORY.frame() if made.memory is None else made.memory
        if has_compiled and has_hidden_kernels(made.ops):
            self.kineto.notes.append(HIDDEN_KERNELS)
        return Run(frames, self.wall_us, self.skipped, self.kineto.notes)

    def skip(self, reason: str, count: int = 1) -> None:
        """Counts something that is not in the frames, so that the trace can say so."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count
