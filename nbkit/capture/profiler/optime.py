"""Times a step and its memory on the profiler's own clock (optime)."""

from collections.abc import Callable, Iterator
from time import perf_counter
from types import TracebackType
from typing import Any

import pandas as pd
import torch

from nbkit import units
from nbkit.capture.calibration import peaks_of_most
from nbkit.capture.calls.thread_state import ThreadState
from nbkit.capture.frames.build import machine_text, now_text, versions
from nbkit.capture.hang.after_error import save_after_error
from nbkit.capture.profiler.alternatives import measure
from nbkit.capture.profiler.kineto import KinetoOptions, check_free, device_to_record, event_overhead_us
from nbkit.capture.profiler.kineto_recording import ELSEWHERE, TAKEN, KinetoRecording, Run
from nbkit.capture.profiler.repeated_runs import repeat_frames
from nbkit.capture.raw.running import TIMING, check_nesting, running
from nbkit.capture.recorder.recorder import describe_error
from nbkit.capture.recorder.starting import Startable
from nbkit.capture.settings import slow_settings
from nbkit.capture.step.tracebacks import failed_at, without_our_frames
from nbkit.capture.subnormals import subnormal_state
from nbkit.errors import OptionError
from nbkit.findings.time.rules import time_findings
from nbkit.progress import Progress
from nbkit.schema import MODULES, OPS
from nbkit.timeline.median_times import MOST_DELAYS
from nbkit.trace.checks import check_step, checked_count
from nbkit.trace.trace import Trace


class optime(Startable[Trace]):  # noqa: N801  a context manager is named like the function it stands for
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
            checked_count(option, value, least=0)
        if name is not None and not isinstance(name, str):
            raise OptionError(f"name must be a str, got {type(name).__name__}.")
        for option, value in (("memory", memory), ("stacks", stacks), ("shapes", shapes), ("savings", savings)):
            if value not in (True, False):
                raise OptionError(f"{option} must be True or False, got {value!r}.")
        # The profiler's engine takes nothing but True and False.
        self.options = KinetoOptions(bool(memory), bool(shapes or savings), device_to_record(device))
        self.measure = measure if savings else None
        self.stacks, self.warmup, self.repeats = stacks, warmup, repeats
        self.bare_us: float | None = None
        self.name = name or self.verb
        self.trace: Trace | None = None
        self.runs: list[Run] = []
        self.recording: KinetoRecording | None = None
        self.is_called_again = False

    def run(self, function: Callable[[], object]) -> Trace:
        """Returns the trace of `function()`, called `warmup` times without recording, then `repeats` times (once if 0).

        Raises OptionError for what cannot be called.
        """
        check_step(function)
        with self as trace:
            for _ in self.rounds():
                function()
        return trace

    def rounds(self) -> Iterator[int]:
        """Yields once per run of the step that is due, and switches the recording on and off around each."""
        yield from self.warm_up()
        for number in range(max(self.repeats, 1)):
            self.thread.set()
            self.begin_run()
            yield self.warmup + number
            self.end_run()

    def warm_up(self) -> Iterator[int]:
        """Yields once per run of the step before those that are recorded, and measures the last of them."""
        self.is_called_again = True
        self.thread = ThreadState()  # in which each run begins; as the last one leaves it, it stays
        for number in range(self.warmup):
            self.thread.set()
            started = perf_counter()
            yield number
            # The first run allocates what later ones reuse.
            self.bare_us = (perf_counter() - started) * 1e6 if number else None

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
        if error is not None and not self.running:
            assert self.trace is not None
            save_after_error(self.trace, error)
        if error is None and (self.warmup or self.repeats) and not self.is_called_again:
            raise OptionError("Nothing was recorded: a `with` block runs once; use nbkit.optime(repeats=N).run(step).")

    def _fill(self, error: BaseException | None, own_failure: str | None) -> None:
        assert self.trace is not None
        # A step that raised while it warmed up has left none.
        runs = self.runs or [Run({"ops": OPS.frame(), "modules": MODULES.frame()}, 0.0, {}, [], {})]
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
            "bare_us": self.bare_us,  # of the last run to warm up, which nothing recorded; null below two
            "repeats": len(self.runs) if self.repeats else 0,
            **run.process,
            "notes": notes,
        }
        if not len(ops) and (lost := [note for note in notes if note in (ELSEWHERE, TAKEN)]):
            meta["unjudged"] = f"Not timed: {lost[0]}."
        if peaks := peaks_of_most(frames["ops"]):
            meta["measured_device"] = peaks
        settings = slow_settings()
        findings = time_findings(frames, self.measure, forwards=run.forwards, look=subnormal_state, settings=settings)
        self.trace._fill({**frames, "findings": findings}, meta)


def _delays(ops: pd.DataFrame, wall_us: float, runs: int) -> list[str]:
    """Says what of the median run no call's median explains, where that is much."""
    sum_us = float(ops["total_time_us"].iloc[0]) if runs > 1 and len(ops) else wall_us
    if sum_us >= (1 - MOST_DELAYS) * wall_us:
        return []
    return [
        f"Times of calls are medians over {runs} runs, and add up to {units.duration(sum_us)}; a run took "
        f"{units.duration(wall_us)}: the rest hit other calls in each run, as other processes do."
    ]
