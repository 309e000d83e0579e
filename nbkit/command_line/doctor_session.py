"""Says what is wrong with a script: with its steps, which are watched and run again, or with the whole as it runs."""

from argparse import Namespace

from nbkit.capture.doctor.opdoctor import opdoctor
from nbkit.capture.doctor.timing import NOT_AGAIN, TAKEN, flops_of, memory_of, times_of
from nbkit.capture.watch.rerun import Rerun, audit_trace
from nbkit.command_line.audit_session import AuditSession
from nbkit.command_line.script.recorders import SingleSteps
from nbkit.command_line.script.session import ScriptSession
from nbkit.command_line.script.steps import Steps
from nbkit.command_line.terminal import Narrator, show
from nbkit.errors import NbkitError
from nbkit.trace.storage import check_save_path, of_this_process
from nbkit.trace.trace import Trace
from nbkit.verbs.registry import has_findings
from nbkit.verbs.verb import BAD_USE, FINDINGS, FINE
from nbkit.views.report.opreport import opreport


class StepsDoctor(AuditSession):
    """Audits the steps of a script; adds their time, memory and FLOPs, and a report if one is wanted."""

    def trace_of(self, rerun: Rerun) -> Trace:
        trace = audit_trace(rerun)
        trace.meta["verb"] = opdoctor.verb
        timed = [one.trace for one in rerun.recordings if one.verb == "optime"]
        times = times_of(timed[0]) if timed else {}
        if times:  # none where the step's own profiler took the events
            memory = memory_of({**trace.frames, "memory": timed[0].memory})
            trace.meta["step"] = {**times, **memory, **_flops_of_one(trace)}
        else:
            trace.meta["unjudged"] = TAKEN if timed else NOT_AGAIN
        self.reported = [trace, *timed]
        return trace

    def _report(self) -> int:
        status = super()._report()
        if self.options.report is None or not len(self.watched.rows):
            return status
        return write_report(self.reported, self.options, self.narrator) or status


class WholeDoctor:
    """Looks at a whole script as it runs; made when all is known to be usable."""

    def __init__(self, options: Namespace) -> None:
        self.options, self.narrator = options, Narrator()
        self.session = ScriptSession(options)
        self.folder = None if options.output is None else of_this_process(options.output)
        if self.folder is not None:
            check_save_path(self.folder)
        self.traces: list[Trace] = []
        recorder = SingleSteps(lambda: opdoctor(name=options.name), lambda trace, number: self.traces.append(trace))
        self.steps = Steps(recorder)

    def run(self) -> int:
        """Returns the exit status where it is ours to say; the script's own exceptions pass through."""
        return self.session.run(self.steps, self._report)

    def _report(self) -> int:
        self.steps.finish()
        if self.steps.problem or not self.traces:
            self.narrator.say(self.steps.problem or "The script ended before anything was recorded.")
            return BAD_USE
        trace = self.traces[0]
        trace.meta["step"]["is_script"] = True
        show(trace.brief(self.options.tokens))
        status = FINDINGS if self.options.fail_on_findings and has_findings(trace) else FINE
        if self.folder is not None:
            try:
                trace.save(self.folder)
                self.narrator.say(f"saved 1 trace to {self.options.output}")
            except NbkitError as error:
                self.narrator.say(str(error))
                status = BAD_USE
        if self.options.report is not None:
            status = write_report([trace], self.options, self.narrator) or status
        return status


def _flops_of_one(trace: Trace) -> dict[str, int]:
    """Returns the FLOPs of a step, in the mean of those that ran again first."""
    steps = len(trace.meta["recordings"][0]["steps"])
    return {name: -(-count // steps) for name, count in flops_of(trace.frames).items()}


def write_report(traces: list[Trace], options: Namespace, narrator: Narrator) -> int:
    """Writes the report that the options ask for; returns BAD_USE where it cannot be written."""
    try:
        opreport(*traces, path=options.report, title=options.name)
    except NbkitError as error:
        narrator.say(str(error))
        return BAD_USE
    narrator.say(f"wrote {options.report}")
    return FINE
