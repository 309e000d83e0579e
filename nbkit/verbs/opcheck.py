"""opcheck finds where values go wrong first. Its trace is shown with the findings above what optrace shows."""

from nbkit.analysis.values.producers import producers
from nbkit.schema import FINDINGS
from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.ops_view import led_by
from nbkit.views.sections.section import Section, columns

ORIGIN = columns("op, ops before: count, phase: phase, module, source")


def check_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the ops that the first finding about an op goes back to; none where nothing was found."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    wrong = findings[(findings["rule"] != "input") & findings["op_id"].notna()]
    if not len(wrong):
        return []
    before = producers(trace, int(wrong["op_id"].iloc[0]))
    rows = before[["op", "distance", "phase", "module", "source"]].to_numpy(object).tolist()
    return [Section("Where the inputs of the first finding came from", ORIGIN, rows)] if rows else []


OPCHECK = Verb(
    "opcheck",
    view=led_by(check_sections),
    recorder=Recorder(
        home="nbkit.capture.check.opcheck:opcheck",
        summary="find where NaN, Inf and lost precision begin",
        description="Find where NaN, Inf and lost precision begin in this cell: forward, backward and optimizer.",
        notes="The findings come first.",
    ),
)
