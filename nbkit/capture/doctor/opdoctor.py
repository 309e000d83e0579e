"""Finds what is wrong with a step: checks, audits and times it, and measures its memory (opdoctor)."""

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import torch
from torch import nn

from nbkit.capture.audit.opaudit import observer_of
from nbkit.capture.check.opcheck import CheckObserver
from nbkit.capture.doctor.timing import MEMORY_TAKEN, TAKEN, TimeObserver, times_of, with_time_findings, with_times
from nbkit.capture.profiler.kineto import check_free, device_to_record, event_overhead_us
from nbkit.capture.profiler.optime import optime
from nbkit.capture.raw.running import check_nesting
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.recorder.starting import Startable
from nbkit.errors import OptionError
from nbkit.trace.checks import check_step
from nbkit.trace.trace import Trace


class DoctorRecorder(Recorder):
    """Records what opcheck, opaudit and optime look at, in one run."""

    verb = "opdoctor"


class opdoctor(Startable[Trace]):  # noqa: N801  a context manager is named like the function it stands for
    """Finds what is wrong with a step, as a context manager; gives a Trace whose brief names the causes first.

    One run is looked at as opcheck, opaudit and optime do, at once, and computes the same bits as without it. The trace
    is that of `optrace`, with `parameters`, `memory` and the findings of all three in one list. `meta["step"]` has the
    step's time, its peak of memory and its FLOPs. With `repeats` further runs are timed as optime does, with nothing
    else looking; of one run the time is a bound, since looking slows it.

    Args:
        model: the model, or several in a list, to look at; without it those that run inside.
        optimizer: the optimizer, or several in a list; without it those that step inside.
        device: "cpu" leaves an accelerator out of the times; by default the one that is there is timed.
        warmup, repeats: with `run(function)`: how often the step runs before, and how often in all after that: the
            first of them is looked at, the others are timed. With a warmup of two or more the last of these runs tells
            the time without recording.
        name: what the trace is called where it is shown.

    Raises:
        OptionError: before anything runs; also when a profiler is running already; at the end of a `with` block that
            was to be repeated.

    It holds a copy of all parameters while it records, as opaudit does. Its aten ops are those that the step calls;
    optime counts those that these call in turn, too.
    """

    verb = DoctorRecorder.verb

    def __init__(
        self,
        model: nn.Module | Sequence[nn.Module] | None = None,
        optimizer: Any | None = None,
        *,
        device: str | torch.device | None = None,
        warmup: int = 0,
        repeats: int = 0,
        name: str | None = None,
    ) -> None:
        self.timing = optime(device=device, warmup=warmup, repeats=repeats, name=name)
        self.times = TimeObserver(device_to_record(device))
        self.looking = DoctorRecorder(observer_of(model, optimizer), CheckObserver(), self.times, name=name)
        self.warmup, self.repeats = warmup, repeats
        self.trace: Trace | None = None
        self.inside: Recorder | optime | None = None

    def run(self, function: Callable[[], object]) -> Trace:
        """Returns the trace of `function()`, called `warmup` times, then `repeats` times (once if 0).

        Raises OptionError for what cannot be called.
        """
        check_step(function)
        with self as trace:
            for _ in self.rounds():
                function()
        return trace

    def rounds(self) -> Iterator[int]:
        """Yields once per run of the step that is due, and switches the recording on and off around each."""
        yield from self.timing.warm_up()
        for number in range(max(self.repeats, 1)):
            self.timing.thread.set()
            self.begin_run()
            yield self.warmup + number
            self.end_run()

    def begin_run(self) -> None:
        """Begins a run of the step: for callers that cannot put their step into a function or a loop over rounds()."""
        if self.inside is self.looking:  # a `with` block whose one run has begun
            return
        if self.inside is None:
            due = self.looking if self.looking.trace is None else self.timing
            due.__enter__()
            self.inside = due
        if self.inside is self.timing:
            self.timing.begin_run()

    def end_run(self) -> None:
        """Ends the run that begin_run() began; what comes until the next one is not recorded."""
        if self.inside is self.timing:
            self.timing.end_run()
        elif self.inside is not None:
            self._leave(None)

    def __enter__(self) -> Trace:
        if self.trace is not None:
            raise OptionError("This opdoctor has been used already; make a new one for each recording.")
        if self.repeats > 1:
            check_nesting(self.timing.verb)
        check_nesting(self.verb)
        check_free()
        event_overhead_us(self.times.options)  # measured before the first recording, which it also warms up
        self.trace = Trace()
        if not (self.warmup or self.repeats):
            self.begin_run()
        return self.trace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        is_missing = self.looking.trace is None
        if is_missing:  # the step raised while it warmed up, or was never called
            self.begin_run()
        if self.inside is not None:
            self._leave(error)
        self._fill()
        if is_missing and error is None:
            raise OptionError(
                "Nothing was recorded: a `with` block runs once; use nbkit.opdoctor(repeats=N).run(step)."
            )

    def _leave(self, error: BaseException | None) -> None:
        inside, self.inside = self.inside, None
        if inside is not None:
            inside.__exit__(
                None if error is None else type(error), error, None if error is None else error.__traceback__
            )

    def _fill(self) -> None:
        """Fills the trace with what was looked at, and where runs were timed, with their times and hints."""
        assert self.trace is not None and self.looking.trace is not None
        frames, meta = dict(self.looking.trace.frames), dict(self.looking.trace.meta)
        timed, first = self.timing.trace or Trace(), self.times
        if not timed.complete and timed.meta:
            meta |= {name: timed.meta[name] for name in ("complete", "error")}
        # Runs that broke off, or whose events a profiler of the step took, say nothing: the first one does.
        if is_timed := timed.complete and len(timed.frames.get("ops", ())) > 0:
            frames, notes = with_times(with_time_findings(frames, timed.findings), timed)
            step = {**meta["step"], **times_of(timed), "bare_us": self.timing.bare_us}
            meta |= {"step": step, "notes": [*meta["notes"], *notes]}
        else:
            frames = with_time_findings(frames, first.findings)
        if first.is_taken:
            meta["unjudged"] = MEMORY_TAKEN if is_timed else TAKEN
        self.trace._fill(frames, meta)
