"""Brief: what a trace says first: what ran, the verdict, the findings, and what nobody has looked at."""

from collections.abc import Sequence
from dataclasses import dataclass

from nbkit import units
from nbkit.schema import OPS
from nbkit.schema.findings import SEVERITIES
from nbkit.trace.once import once_per_view, one_view
from nbkit.trace.trace import Trace
from nbkit.views.brief.entry import LONGEST, Entry, entries, has_steps
from nbkit.views.brief.next_steps import left_to_look_at, next_steps
from nbkit.views.statements.recorded import recorded_words
from nbkit.views.statements.statement import Statement, Tone, Words
from nbkit.views.statements.subjects import SUBJECTS, Look, Subject
from nbkit.views.summary.facts import facts, figure_text
from nbkit.views.summary.names import shown

OTHER_THREADS = "whose ops are not recorded"  # as capture/step/other_threads.py counts them
LATER_STEPS = (
    "One step was checked, and faults often begin later: watch several with %%opaudit or "
    "`python -m nbkit audit SCRIPT --step STEP`."
)
# Figures of a recording that a reader of findings needs; the summary has all. Some are known by their value alone.
FIGURES = {
    *("step", "steps", "loss", "aten ops", "allocations", "allocation", "left results", "right results", "torch"),
    *("graph", "graphs", "node", "nodes", "edge", "edges", "module", "modules", "call", "calls", "rank", "ranks"),
}
NOT_RUN = ("opcost", "cost_table")  # their steps are counted on shapes alone
FORMS = {"looked into": "{} looked into", "wall time": "{}", "device": "{}", "devices": "{}"}


@dataclass(frozen=True)
class Brief:
    """Holds what a trace says first.

    `ran` is a line on the recording and `incomplete` why it ended early, null if it did not. `verdict` holds sentences,
    where nothing was judged one on what was recorded, `entries` the findings, the worst first, `missing` what nobody
    has looked at, and `limits` what an audit of a script could not do, or that opcheck saw one step alone.
    """

    ran: str
    incomplete: str | None
    verdict: tuple[Words, ...]
    tone: Tone
    entries: tuple[Entry, ...]
    missing: tuple[Look, ...]
    limits: tuple[str, ...] = ()

    @property
    def not_looked_at(self) -> str:
        """Returns the line on what to look at next; first what an audit of a script could not."""
        return " ".join(filter(None, (*self.limits, next_steps(self.missing))))


@once_per_view
@one_view()
def brief_of(trace: Trace) -> Brief:
    """Returns the brief of a trace; of a graph, which nobody ran, it has neither verdict nor findings."""
    found = entries(trace)
    told = [(subject, subject.told(trace) if subject.is_of(trace) else None) for subject in SUBJECTS]
    verdict, tone = _verdict(trace, found, [(subject, one) for subject, of in told for one in of or ()])
    own = str(trace.meta.get("verb"))
    was_run = own not in NOT_RUN and any(len(trace.frames.get(name, ())) for name in ("ops", "steps"))
    unseen = [subject.look for subject, of in told if subject.look is not None and of is None]
    nothing: list[Words] = [(look.nothing,) for look in unseen if _is_missed(trace, look)]
    others = [look for look in unseen if own not in (look.verb, *look.too)]
    return Brief(
        _what_ran(trace),
        facts(trace).incomplete,
        (*_another_run(trace), *((*verdict, *nothing) or recorded_words(trace)), *_elsewhere(trace)),
        tone,
        tuple(found),
        left_to_look_at(trace, [look for look in others if was_run and look.is_usual]),
        (*(shown(str(limit), LONGEST) for limit in trace.meta.get("limits", [])), *_later_steps(trace, found)),
    )


def _is_missed(trace: Trace, look: Look) -> bool:
    """Returns whether it is to be said that there was nothing to look at.

    Where no step was run again the limits say so, and opdoctor says otherwise that no op ran.
    """
    if trace.meta.get("recordings") == [] or trace.meta.get("unjudged"):
        return False
    verb, ops = trace.meta.get("verb"), trace.frames.get("ops", OPS.frame())
    if verb not in look.too:
        return verb == look.verb
    return bool((ops["level"] == "aten").any() and (not look.phases or ops["phase"].isin(look.phases).any()))


def _another_run(trace: Trace) -> list[Words]:
    """Says which steps of a script were not the same when they were run again, before anything else is."""
    return [(shown(str(text), LONGEST),) for text in trace.meta.get("another_run", [])]


def _elsewhere(trace: Trace) -> list[Words]:
    """Says what ran in other threads, of which the rest of the brief knows nothing."""
    return [(f"Not seen: {shown(why)}.",) for why in trace.meta.get("skipped", {}) if OTHER_THREADS in why]


def _later_steps(trace: Trace, found: Sequence[Entry]) -> tuple[str, ...]:
    """Returns what to do where opcheck found nothing wrong, at most hints, in one step of a training."""
    is_checked = trace.meta.get("verb") == "opcheck" and trace.complete and trace.meta.get("checked_tensors")
    if _is_wrong(found) or not is_checked:
        return ()
    is_training = (trace.frames.get("ops", OPS.frame())["phase"] == "backward").any()
    return (LATER_STEPS,) if is_training and not has_steps(trace) else ()


def _is_wrong(found: Sequence[Entry]) -> bool:
    return any(entry.severity != "hint" for entry in found)


def left_out(count: int) -> str:
    """Returns the line on findings that are not shown; empty for none."""
    return f"{units.counted(count, 'further finding')} in trace.findings." if count > 0 else ""


def _what_ran(trace: Trace) -> str:
    known = facts(trace)
    figures = [
        FORMS[label].format(value) if label in FORMS else figure_text(label, value)
        for label, value in known.figures
        if label in FORMS or label in FIGURES
    ]
    return f"{known.title}: {', '.join(figures) or 'nothing recorded'}."


def _verdict(
    trace: Trace, found: Sequence[Entry], told: Sequence[tuple[Subject, Statement]]
) -> tuple[list[Words], Tone]:
    """Returns the sentences of the verdict; findings are counted before what was looked at.

    Whether the step agrees with another run stands before all: who names one asks that.
    """
    asked, said = (
        [words for of, one in told if of.leads is leads for words in one.sentences] for leads in (True, False)
    )
    judged = {one.tone for of, one in told if of.judges}
    # Of another run, or of two sides.
    agrees: Tone = next((one.tone for of, one in told if one.tone and not of.judges), "")
    is_wrong = "bad" in judged or _is_wrong(found)
    if unjudged := trace.meta.get("unjudged"):
        return [*asked, *counted(found), (str(unjudged),), *said], "bad" if is_wrong else ""
    if is_wrong:
        return [*asked, *counted(found), *said], "bad"
    if "good" in judged and agrees != "bad":
        until = "" if trace.complete else " until then"
        first = "No errors and no warnings" if found else "Nothing wrong found"
        return [*asked, (f"{first}{until}.",), *counted(found), *said], "good"
    return [*asked, *said, *counted(found)], agrees


def counted(found: Sequence[Entry]) -> list[Words]:
    """Returns the sentence that counts causes by severity, and what follows from them; none without findings."""
    counts = [(severity, sum(entry.severity == severity for entry in found)) for severity in SEVERITIES]
    texts = [units.counted(number, severity) for severity, number in counts if number]
    if following := sum(entry.consequences for entry in found):
        hints = texts[len(texts) - (counts[-1][1] > 0) :]
        wrong = texts[: len(texts) - len(hints)]
        causes = sum(number for severity, number in counts if severity != "hint")
        many = [f"{units.counted(causes, 'cause')} ({', '.join(wrong)})"] if len(wrong) > 1 else wrong
        return [(f"{', '.join([*many, units.counted(following, 'consequence'), *hints])}.",)]
    order = ", the worst first" if len(found) > 1 else ""
    return [(f"{', '.join(texts)}{order}.",)] if texts else []
