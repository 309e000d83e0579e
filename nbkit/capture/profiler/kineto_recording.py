"""KinetoRecording keeps torch.profiler's engine on around one run of a step, and makes frames of what it saw."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import numpy as np
import pandas as pd
from torch._C._profiler import _RecordFunctionFast

from nbkit.capture.distributed.api_calls import COLLECTIVE_MARK
from nbkit.capture.distributed.collective_recording import CollectiveRecording
from nbkit.capture.frames.module_rows import modules_frame
from nbkit.capture.frames.raised import without_not_run
from nbkit.capture.profiler.api_ranges import API_MARK, ApiRanges
from nbkit.capture.profiler.compiled_graphs import CompiledGraphs
from nbkit.capture.profiler.kineto import Kineto, KinetoOptions
from nbkit.capture.profiler.kineto_events import before_the_end, read
from nbkit.capture.profiler.op_lines import OpLines
from nbkit.capture.profiler.own_work import shifted, without_own_work
from nbkit.capture.profiler.ranges import ROOT_MARK, Ranges
from nbkit.capture.raw.patching import Patch
from nbkit.capture.step.compiled import CompiledRegions
from nbkit.compat.torch_versions import CHECKPOINT_STOP
from nbkit.findings.time.step import Forwards
from nbkit.schema import LINES, MEMORY
from nbkit.timeline import MODULE, Events, timeline
from nbkit.timeline.compiled import has_hidden_kernels
from nbkit.timeline.events import ABSENT
from nbkit.timeline.names import ROOT, STOP_MARK

CLOCK_MARK = "nbkit clock"
# Why a recording has no events.
ELSEWHERE = "nothing was recorded: the recording ended in another thread than the one it began in"
HIDDEN_KERNELS = (
    "A compiled region's fused kernels are no rows: their time is self time of the rows of the region. Each is a row "
    "where torch._inductor.config.cpp.enable_kernel_profile was True when the region was compiled."
)
TAKEN = "nothing was recorded: another profiler began inside the recording and took the events"


@dataclass
class Run:
    """Holds one recorded run of the step: its frames, and what is known about it."""

    frames: dict[str, pd.DataFrame]
    wall_us: float
    skipped: dict[str, int]
    notes: list[str]
    forwards: Forwards  # of the modules that were called
    process: dict[str, Any] = field(default_factory=dict)  # what meta says of one of several


class KinetoRecording:
    """Keeps one recording on, from its making to end()."""

    def __init__(self, options: KinetoOptions, stacks: bool) -> None:
        self.options = options
        self.skipped: dict[str, int] = {}
        self.kineto = Kineto(options, self._give_way)
        self.api = ApiRanges()
        self.ranges = Ranges(self.api)
        self.collectives = CollectiveRecording(with_ranges=True)
        self.compiled = CompiledRegions(self, self.api, self.ranges)
        self.graphs = CompiledGraphs()
        self.lines = OpLines()
        self.ending = Patch(CHECKPOINT_STOP, "__init__")
        self.result: Any = None
        with ExitStack() as ends:  # an interrupt in here leaves nothing on
            self.kineto.start()
            ends.callback(self._stop)
            for part in (self.ranges, self.collectives, self.graphs, self.compiled):
                ends.callback(part.remove)
                part.install()
            ends.callback(self.ending.remove)
            self.ending.install(_marking(self.ending))
            ends.callback(self.api.__exit__)
            if stacks:
                self.api.__enter__()
            ends.callback(self.lines.remove)
            # The first range takes tens of microseconds, so that nobody could tell when within them a second began.
            with _RecordFunctionFast(CLOCK_MARK):
                pass
            self.start_ns = perf_counter_ns()
            ends.enter_context(_RecordFunctionFast(ROOT_MARK))
            self.mark_ns = (self.start_ns + perf_counter_ns()) // 2
            self.lines.install()
            self.ends = ends.pop_all()

    def _stop(self) -> None:
        self.result = self.kineto.stop()

    def _give_way(self) -> None:
        """Ends all but the run: a range left open would be told to the other profiler, which knows nothing of it."""
        self.stop()
        self.result = None  # a part of the run

    def end(self) -> Run:
        """Switches everything off and returns the frames of what was recorded."""
        self.stop()
        return self.read()

    def stop(self) -> None:
        """Switches everything off."""
        self.end_ns = perf_counter_ns()
        self.wall_us = (self.end_ns - self.start_ns) / 1e3
        self.ends.close()

    def read(self, own_work: np.ndarray | None = None) -> Run:
        """Returns the frames of what was recorded; `own_work` are spans of perf_counter_ns() to leave out, in order."""
        self.ranges.other_threads.say(self.skip)
        for reason, count in self.ranges.skipped.items():
            self.skip(reason, count)
        events = before_the_end(read(self.result, self.options, self.skip), ROOT_MARK)
        if CLOCK_MARK in events.name:
            events = events.at(np.delete(np.arange(len(events.name)), events.name.index(CLOCK_MARK)))
        inside = np.zeros((0, 2), dtype=np.int64)
        if own_work is not None and ROOT_MARK in events.name:
            inside = own_work[own_work[:, 0] >= self.start_ns]
            offset = int(events.start_ns[events.name.index(ROOT_MARK)]) - self.mark_ns
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
            "ops": without_not_run(made.ops),
            "modules": modules_frame(self.ranges.modules, self.ranges.modules.roots.labels()),
            "lines": LINES.frame({"source": [*texts], "text": [*texts.values()]}),
        }
        if self.options.memory:
            frames["memory"] = MEMORY.frame() if made.memory is None else made.memory
        if has_compiled and has_hidden_kernels(made.ops):
            self.kineto.notes.append(HIDDEN_KERNELS)
        process = self._add_collectives(frames, inside) if len(frames["ops"]) else {}
        notes = [*self.kineto.notes, *process.get("notes", [])]
        return Run(frames, self.wall_us, self.skipped, notes, self.ranges.modules.forwards(), process)

    def _add_collectives(self, frames: dict[str, pd.DataFrame], own_work: np.ndarray) -> dict[str, Any]:
        """Adds the frame of collectives, if this is one of several processes; returns what meta says of it."""

        def to_us(times: np.ndarray) -> np.ndarray:
            return (shifted(times, own_work) - self.mark_ns) / 1e3

        return self.collectives.add_to(frames, (self.mark_ns, self.end_ns), to_us)

    def skip(self, reason: str, count: int = 1) -> None:
        """Counts something that is not in the frames, so that the trace can say so."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count


def _marking(ending: Patch) -> Callable[..., None]:
    """Returns what begins the exception by which a checkpoint ends what it computes again: it marks the call so."""

    def __init__(self: Exception, *args: Any) -> None:
        ending.before(self, *args)
        with _RecordFunctionFast(STOP_MARK):
            pass

    return __init__


def with_marks(events: Events, ranges: Ranges, api: ApiRanges, collectives: CollectiveRecording) -> Events:
    """Returns the events with every range under its own name; they start at that of the root range."""
    by_mark = {entry.name: entry for entry in ranges.module_ranges.values()}
    calls = dict.fromkeys(by_mark, 0)
    names, labels = list(events.name), ranges.modules.roots.labels()
    model, module, source, group = (_no_texts(len(events)) for _ in range(4))
    size_bytes = events.integers("size_bytes")
    module_call = np.full(len(events), ABSENT, dtype=np.int64)
    # A block that the user named like a mark is none. In order of time, in which the calls of a module are counted.
    rows = np.flatnonzero(events.integers("block") != 1)
    for row in rows[np.argsort(events.start_ns[rows], kind="stable")].tolist():
        name = names[row]
        if name in by_mark:
            called, names[row] = by_mark[name].called, by_mark[name].type
            module_call[row] = calls[name]
            calls[name] += 1
            model[row], module[row], events.kind[row] = labels[called.root], called.path, MODULE
        elif name.startswith(API_MARK):
            names[row], source[row] = api.described(int(name[len(API_MARK) :]))
        elif name.startswith(COLLECTIVE_MARK):
            made = collectives.api.calls[int(name[len(COLLECTIVE_MARK) :])]
            names[row], group[row] = made.name, None if made.group is None else made.group.text
            size_bytes[row] = ABSENT if made.size_bytes is None else made.size_bytes
        elif name == ROOT_MARK:
            names[row] = ROOT
            events.origin_ns, events.main_thread = int(events.start_ns[row]), int(events.thread[row])
    events.name, events.model, events.module, events.source = names, model, module, source
    events.module_call, events.size_bytes, events.group = module_call, size_bytes, group
    return events


def _no_texts(count: int) -> list[str | None]:
    return [None] * count
