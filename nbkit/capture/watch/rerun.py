"""Runs kept steps of a script again, under recorders, and puts their traces together."""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from time import perf_counter_ns

import torch

from nbkit import units
from nbkit.capture.audit.observer import AuditObserver
from nbkit.capture.check.opcheck import CheckObserver
from nbkit.capture.diff.opdiff import opdiff
from nbkit.capture.frames.build import now_text, versions
from nbkit.capture.profiler.optime import optime
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.watch.inputs import InputsObserver
from nbkit.capture.watch.keeper import FEWEST_CALLS, TOO_LARGE, Call, Keeper, Segment
from nbkit.capture.watch.reached import UNSEEN
from nbkit.capture.watch.rows import StepRows
from nbkit.capture.watch.state import State, TooLargeError
from nbkit.capture.watch.watch import Row, StepWatch
from nbkit.findings.finding import wrong
from nbkit.findings.steps.anomalies import FAILED, never_stepped, step_findings
from nbkit.findings.steps.inputs import StepInput, unusual_inputs
from nbkit.findings.steps.recordings import RecordedSteps, findings_of_steps
from nbkit.findings.training.over_steps.untrained import OF_STEPS
from nbkit.schema import FINDINGS, OPS, PARAMETERS
from nbkit.trace.trace import Trace

# What the steps that are recorded may take when they run bare; one is recorded in any case.
MOST_SECONDS = 20.0
# A step of a device that takes longer is not compared with the CPU, which would take minutes.
MOST_COMPARED_US = 1e6
# So many anomalous steps are looked at in depth.
MOST_ANOMALIES = 3
NOT_KEPT = "Step {number} stands out and was not looked into: its data takes more memory than --keep-bytes allows."
ANOTHER_RUN = (
    "This is another run: {what} could not be put back.{losses} What is found in it is said of that run, not of step "
    "{number}."
)
LOSSES = " Step {number} has the loss {now} when it is run again, and had {before}."
SIMILAR = (
    "Step {number} has the loss {now} when it is run again right behind the step before, and had {before}: what "
    "{who} between the two counts, so that findings are about a similar step."
)
UNKNOWN = (
    "something that step {number} depends on, beside its arguments, models, optimizers, random numbers and what is set "
    "in torch,"
)
QUEUES = (
    "No step was run again: the step reads {queues}, which could not be put back. `python -m nbkit run --verb opaudit` "
    "records one as it runs."
)


class CannotRunAgainError(Exception):
    """Says in a sentence why a step could not be run again."""


@dataclass
class Recording:
    """Holds the trace of some steps, with what describes them."""

    verb: str
    trace: Trace
    steps: RecordedSteps


class AuditRecorder(Recorder):
    """Records what opaudit and opcheck look at, in one pass."""

    verb = "opaudit"


@dataclass
class Rerun:
    """Runs the steps again that a keeper has kept; `rows` are those of the frame `steps`.

    `recordings` holds what was recorded, `limits` says in sentences what could not be.
    """

    keeper: Keeper
    rows: StepRows
    name: str
    say: Callable[[str], None]
    outside_steps: int = 0  # of optimizers, between the watched steps
    recordings: list[Recording] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    others: dict[int, str] = field(default_factory=dict)  # what is said of steps that are another one when run again
    planned: set[int] = field(default_factory=set)  # numbers of the steps that are to be looked into
    error: dict[str, str] | None = None  # that Ctrl-C ended it
    is_idle: bool = False  # there are optimizers, and what they hold is at the end as it was in the beginning

    def run(self) -> None:
        """Records the first steps in depth, times them, and records the last and each anomalous one; up to Ctrl-C."""
        if self.keeper.problem is not None:
            self.limits.append(self.keeper.problem)
        first = self.keeper.first
        if first is None:
            return
        if self.keeper.reached.queues:  # a step that waits for the next item might wait for ever
            self.limits.append(QUEUES.format(queues=" and ".join(self.keeper.reached.queues)))
            return
        step = first.calls[0].step
        try:
            now = State([*self.keeper.holders, *step.objects()], [step.names], 2 * self.keeper.most_bytes)
        except (TooLargeError, torch.OutOfMemoryError):
            self.limits.append(TOO_LARGE)
            return
        names = dict(step.module)
        self.is_idle = self.keeper.is_idle()
        try:
            self._all(first)
        except KeyboardInterrupt:
            done = {number for recording in self.recordings for number in recording.steps.steps}
            message = f"{len(done)} of {units.counted(len(self.planned), 'step')} looked into."
            self.error = {"type": "Interrupted", "message": message}
        finally:
            now.restore()
            step.module.update(names)
            self.keeper.pinned.clear()

    def _all(self, first: Segment) -> None:
        calls = self._first_calls(first)
        anomalous, last = self.rows.anomalous, self.rows.last["step"]
        is_late = last > calls[-1].number + FEWEST_CALLS and self.keeper.segment_of(last) is not None
        looked = sorted({*anomalous, *self.keeper.pinned})
        self.planned = {call.number for call in calls} | self.keeper.pinned.keys() | ({last} if is_late else set())
        if self._attempt(calls[0].number, partial(self._check, first, calls)):
            self._attempt(calls[0].number, partial(self._first, first, calls))
        for number in looked:
            segment = self.keeper.pinned.get(number)
            if segment is not None:
                self._attempt(number, partial(self._anomalous, segment, number))
            elif len(self.keeper.pinned) < MOST_ANOMALIES:
                self.limits.append(NOT_KEPT.format(number=number))
        recorded = {number for recording in self.recordings for number in recording.steps.steps}
        segment = self.keeper.segment_of(last)
        if segment is not None and is_late and last not in recorded:
            self._attempt(last, partial(self._later, segment, last))

    def _attempt(self, number: int, work: Callable[[], object]) -> bool:
        self.say(f"running step {number} again to look at it")
        try:
            with _silenced():
                work()
        except CannotRunAgainError as problem:
            self.limits.append(f"Step {number} could not be run again: {problem}.")
            return False
        return True

    def _first_calls(self, first: Segment) -> list[Call]:
        """Returns the calls of the first steps; a script with fewer runs its last one again."""
        seconds = max(self.rows[0]["wall_us"] / 1e6, 1e-6)
        count = max(1, min(FEWEST_CALLS, int(MOST_SECONDS / seconds)))
        calls = first.calls[:count]
        is_failed = self.rows[min(len(calls), len(self.rows)) - 1]["anomaly"] == FAILED
        further = Call(calls[-1].step, before=calls[-1])
        return calls if is_failed else [*calls, *[further] * (count - len(calls))]

    def _check(self, segment: Segment, calls: Sequence[Call]) -> None:
        """Runs steps again as they were, and notes where they are not the same: their losses tell."""
        self._go_to(segment, calls[0])
        watch = StepWatch()
        watch.install()
        try:
            for call in calls:
                watch.begin(call.number)
                error = call.failure()
                row, before = watch.end(error), self.rows[call.number]
                if error is not None and before["error"] != type(error).__name__:
                    raise self._cannot(call, error)
                if not call.is_further and (text := self._another(call, row["loss"], before)):
                    is_begin = call is segment.calls[0] or before["anomaly"] is not None
                    if is_begin or self._not_put_back(call):
                        self.others.update(dict.fromkeys((one.number for one in calls), text))
                    else:
                        who = "optimizers do" if self.outside_steps else "happens"
                        texts = {"number": call.number, "now": row["loss"], "before": before["loss"]}
                        self.limits.append(SIMILAR.format(**texts, who=who))
                    return
        finally:
            watch.remove()

    def _cannot(self, call: Call, error: Exception) -> CannotRunAgainError:
        why, what = f"{type(error).__name__}: {error}".rstrip(": "), " and ".join(self._not_put_back(call))
        return CannotRunAgainError(f"{why}; {what} could not be put back" if what else why)

    def _not_put_back(self, call: Call) -> list[str]:
        return [*call.thread.missing, *self.keeper.reached.one_way]

    def _another(self, call: Call, loss: float | None, before: Row) -> str | None:
        """Returns what is said of a step that is another one; where no number tells, if something was not put back."""
        what, number = " and ".join(self._not_put_back(call)), call.number
        losses = LOSSES.format(number=number, now=loss, before=before["loss"])
        if repr(loss) == repr(before["loss"]):
            if not what or (loss is not None and isfinite(loss)) or before["error"] is not None:
                return None
            losses = ""
        unknown = UNKNOWN.format(number=number) if self.keeper.reached.is_whole else UNSEEN
        return ANOTHER_RUN.format(what=what or unknown, losses=losses, number=number)

    def _first(self, first: Segment, calls: Sequence[Call]) -> None:
        names = [call for call in calls if not call.is_further]
        groups = [("diff", names)]
        try:
            self._audit(first, calls, "audit")
        except CannotRunAgainError:
            # A step that moves the model to another device is recorded alone, without the gradients of others.
            first = Segment(first.state)
            groups = [(f"diff-step={call.number}", [call]) for call in names]
            for call in names:
                self._audit(first, [call], f"step={call.number}")
        rows = [self.rows[call.number] for call in names]
        if any(row["error"] for row in rows):
            return
        self._time(first, calls)
        devices = {device for one in self.recordings for device in one.trace.meta.get("devices", [])}
        if devices - {"cpu"} and max(row["wall_us"] for row in rows) < MOST_COMPARED_US:
            for name, group in groups:
                self._record(first, group, opdiff(name=self.name), name)

    def _audit(self, segment: Segment, calls: Sequence[Call], name: str) -> None:
        observer = AuditObserver((), (), has_steps=self.rows.has_steps)
        title = self.name if name == "audit" else f"{self.name}, step {calls[0].number}"
        self._record(segment, calls, AuditRecorder(observer, CheckObserver(), name=title), name)

    def _time(self, first: Segment, calls: Sequence[Call]) -> None:
        timing = optime(name=self.name, memory=True)
        self._go_to(first, calls[0])
        call = calls[0]
        try:
            with timing as trace:
                for call in calls:
                    timing.begin_run()
                    call.run()
                    timing.end_run()
        except Exception as error:  # such as StopIteration: the runs before have used an iterator up
            raise self._cannot(call, error) from error
        self._add("time", "optime", trace, calls)

    def _anomalous(self, segment: Segment, number: int) -> None:
        call = segment.call(number)
        assert call is not None
        self._check(segment, [call])
        self._audit(segment, [call], f"step={number}")
        if number in self.others:
            return
        usual, looked = self._usual(number)
        inputs = self._inputs(segment, call)
        self.recordings[-1].steps.others += unusual_inputs(number, inputs, usual, looked)

    def _usual(self, number: int) -> tuple[int, list[StepInput]]:
        """Returns a step that is not anomalous, and its data: the one before, if that is kept, else the first."""
        for candidate in (number - 1, 0):
            segment = self.keeper.segment_of(candidate)
            call = None if segment is None else segment.call(candidate)
            if segment is not None and call is not None and candidate != number:
                return candidate, self._inputs(segment, call)
        return number, []

    def _inputs(self, segment: Segment, call: Call) -> list[StepInput]:
        observer = InputsObserver(tensor for tensor, *_ in segment.state.tensors.values())
        self._go_to(segment, call)
        with Recorder(observer):
            call.failure()
        return observer.inputs

    def _later(self, segment: Segment, number: int) -> None:
        call = segment.call(number)
        assert call is not None
        self._check(segment, [call])
        self._audit(segment, [call], f"step={number}")

    def _go_to(self, segment: Segment, call: Call) -> None:
        segment.state.restore()
        for earlier in segment.calls:
            if earlier.number >= call.number:
                return
            earlier.failure()

    def _record(
        self, segment: Segment, calls: Sequence[Call], recorder: AbstractContextManager[Trace], name: str
    ) -> None:
        """Runs steps again under a recorder, up to one that raises.

        Raises CannotRunAgainError if it raises what it did not raise when it ran first.
        """
        self._go_to(segment, calls[0])
        marks: list[int] = []
        trace = Trace()
        try:
            with recorder as trace:
                began = perf_counter_ns()
                for call in calls:
                    marks.append(perf_counter_ns() - began)
                    call.run()
        except Exception:
            pass
        error = trace.meta.get("error")
        if error is not None and error["type"] != self.rows[calls[len(marks) - 1].number]["error"]:
            raise CannotRunAgainError(f"{error['type']}: {error['message']}".rstrip(": "))
        self._add(name, str(trace.meta.get("verb")), trace, calls[: len(marks)], [mark / 1e3 for mark in marks])

    def _add(self, name: str, verb: str, trace: Trace, calls: Sequence[Call], begins: Sequence[float] = ()) -> None:
        findings = trace.frames.get("findings", FINDINGS.frame())
        if self.recordings and verb == AuditRecorder.verb:
            findings = wrong(findings)  # hints about gradients from before it are for the first steps
        if self.outside_steps:  # which did not run again
            findings = findings[~findings["rule"].isin(OF_STEPS)]
        numbers = [call.number for call in calls]
        is_another = any(number in self.others for number in numbers)
        ops = trace.frames.get("ops", OPS.frame())
        steps = RecordedSteps(name, findings, ops, numbers, begins, is_another=is_another)
        self.recordings.append(Recording(verb, trace, steps))


def audit_trace(rerun: Rerun) -> Trace:
    """Returns the trace of an audit: the first recording, with the frame `steps` and the findings of all."""
    steps = rerun.rows.blocks.frame()
    recordings = rerun.recordings
    first = recordings[0].trace if recordings else Trace()
    found = step_findings(steps, first.frames.get("parameters", PARAMETERS.frame()))
    has_line = any((one.steps.findings["rule"] == "no_step").any() for one in recordings)
    if rerun.is_idle and not rerun.outside_steps and not has_line:
        found += never_stepped(steps)
    findings = findings_of_steps([one.steps for one in recordings], found)
    frames = {**first.frames, "steps": steps, "findings": findings}
    meta = {
        **(first.meta or {"created": now_text(), "versions": versions(), "complete": True, "error": None}),
        "verb": "opaudit",
        "name": rerun.name,
        "recordings": [{"name": one.steps.name, "verb": one.verb, "steps": [*one.steps.steps]} for one in recordings],
        "limits": rerun.limits,
        "another_run": [*dict.fromkeys(rerun.others.values())],
        **({} if rerun.error is None else {"complete": False, "error": rerun.error}),
        "outside_steps": rerun.outside_steps,
    }
    return Trace(frames, meta)


@contextmanager
def _silenced() -> Iterator[None]:
    """Drops what steps print: they have printed it before."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield
