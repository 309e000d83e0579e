"""Audits a script: watches all its steps, and looks into some of them when it is over."""

import sys
from argparse import Namespace
from pathlib import Path
from types import FrameType

from nbkit import units
from nbkit.capture.frames.build import now_text
from nbkit.capture.watch.keeper import Keeper, Segment
from nbkit.capture.watch.layers import LayerWatch
from nbkit.capture.watch.rerun import MOST_ANOMALIES, Rerun, audit_trace
from nbkit.capture.watch.rows import Blocks, StepRows, limits_of
from nbkit.capture.watch.state import freeze_torch, holders
from nbkit.capture.watch.watch import StepWatch
from nbkit.command_line.script.called import StepCall
from nbkit.command_line.script.session import ScriptSession
from nbkit.command_line.script.steps import Steps
from nbkit.command_line.terminal import Narrator, show
from nbkit.errors import TraceError
from nbkit.findings.finding import wrong
from nbkit.findings.steps.anomalies import LOSS_NOT_FINITE, AnomalyJudge
from nbkit.schema import METRICS
from nbkit.trace.live import LiveTrace
from nbkit.trace.storage import check_save_path, of_this_process, traces_in
from nbkit.trace.trace import Trace
from nbkit.verbs.verb import BAD_USE, FINDINGS, FINE

# As a shell gives it for a process that Ctrl-C ended.
INTERRUPTED = 130


class WatchedSteps:
    """Watches each step, keeps what it takes to run some of them again; `rows` are those of the frame `steps`."""

    def __init__(self, most_bytes: int, line: int | None, folder: Path | None = None) -> None:
        self.line, self.folder = line, folder
        self.watch, self.keeper, self.judge = StepWatch(), Keeper(most_bytes), AnomalyJudge()
        self.rows = StepRows()
        self.live: LiveTrace | None = None
        self._segment: Segment | None = None
        self._was_read = True  # whether the gradients of the step before were

    def begin(self, number: int, frame: FrameType) -> None:
        if not len(self.rows):
            self._start()
        self._segment = self.keeper.begin(StepCall(frame, number, self.line))
        self.watch.begin(number)

    def _start(self) -> None:
        if self.folder is not None:
            self.live = LiveTrace(self.folder, ("steps", "metrics"), {"verb": "opaudit", "created": now_text()})
            self.rows = StepRows(live=self.live)
        self.metrics = Blocks(METRICS, self.live)
        self.watch.layers = LayerWatch(self.metrics.append, lambda: self.keeper.holders or holders())
        self.watch.install()

    def end(self, error: BaseException | None, *, is_last: bool) -> bool:
        row = self.watch.end(error)
        if self._segment is not None:
            with self.keeper.copying:
                row["update_fraction"] = self.watch.update_fraction(self._segment.state)
        is_ended = error is not None and not isinstance(error, Exception)  # by Ctrl-C, or sys.exit()
        row["anomaly"] = None if is_ended else self.judge.judge(row)
        self.rows.append(row)
        if row["anomaly"] is not None and len(self.keeper.pinned) < MOST_ANOMALIES:
            if row["anomaly"] == LOSS_NOT_FINITE and len(self.rows) > 1 and not self._was_read:
                # It may have had the gradients that spoiled the parameters.
                self.keeper.pin(row["step"] - 1)
                self.rows.keep_before_last()
            self.keeper.pin(row["step"])
        self._was_read = self.watch.is_read
        return False

    def finish(self) -> None:
        if self.watch.is_installed:
            self.watch.remove()


class AuditSession:
    """Audits the steps of a script; made when all is known to be usable."""

    def __init__(self, options: Namespace) -> None:
        self.options, self.narrator = options, Narrator()
        self.session = ScriptSession(options)
        self.folder: Path | None = None
        if options.output is not None:
            self.folder = of_this_process(options.output)
            _check_folder(self.folder)
        target = self.session.target
        self.watched = WatchedSteps(options.keep_bytes, None if target is None else target.line, self.folder)
        count = sys.maxsize if options.steps is None else options.steps
        self.steps = Steps(self.watched, count=count, stops=options.steps is not None)

    def run(self) -> int:
        """Returns the exit status where it is ours to say; the script's own exceptions pass through."""
        freeze_torch()
        return self.session.run(self.steps, self._report)

    def _report(self) -> int:
        self.steps.finish()
        if self.steps.problem:
            self.narrator.say(self.steps.problem)
        if not len(self.watched.rows):
            self.narrator.say(self.session.never_met())
            return BAD_USE
        watched, name = self.watched, self.options.name
        rerun = Rerun(watched.keeper, watched.rows, name, self.narrator.progress, watched.watch.outside_steps)
        rerun.run()
        metrics = watched.metrics.frame()
        rerun.limits += limits_of(watched.watch, watched.rows, watched.metrics)
        trace = self.trace_of(rerun)
        trace.frames["metrics"] = metrics
        show(trace.brief(self.options.tokens))
        status = self._save(rerun, trace) if self.folder is not None else FINE
        if rerun.error is not None:
            return INTERRUPTED
        if status == FINE and self.options.fail_on_findings and len(wrong(trace.findings)):
            return FINDINGS
        return status

    def trace_of(self, rerun: Rerun) -> Trace:
        """Returns the trace that holds what was found."""
        return audit_trace(rerun)

    def _save(self, rerun: Rerun, trace: Trace) -> int:
        assert self.folder is not None
        traces = {"audit": trace, **{one.steps.name: one.trace for one in rerun.recordings[1:]}}
        try:
            for name, of_steps in traces.items():
                of_steps.save(self.folder / name)
        except TraceError as error:
            self.narrator.say(str(error))
            return BAD_USE
        if self.watched.live is not None:  # all of it is in the trace
            self.watched.live.remove()
        count = units.counted(len(traces), "trace")
        self.narrator.say(f"saved {count} to {self.options.output}")
        return FINE


def _check_folder(folder: Path) -> None:
    if folder.is_dir() and any(folder.iterdir()) and not ((folder / "audit").is_dir() or traces_in(folder)):
        raise TraceError(f"{folder} is not empty, and it holds no audit to be replaced; give another name.")
    check_save_path(folder / "audit")
