"""Brief: what a trace says first: what ran, the verdict, the findings, and what nobody has looked at."""

from collections.abc import Sequence
from dataclasses import dataclass

from nbkit import units
from nbkit.schema import OPS
from nbkit.schema.findings import SEVERITIES
from nbkit.trace.once import once_per_view, one_view
from nbkit.trace.trace import Trace
from nbkit.views.brief.entry import LONGEST, Entry, entries, has_steps
from nbkit.views.brief.looks import JUDGES, LOOKS, Look, seen_values
from nbkit.views.brief.next_steps import left_to_look_at, next_steps
from nbkit.views.statements.against import against_tone, against_words
from nbkit.views.statements.alignment import alignment_tone, alignment_words
from nbkit.views.statements.cost import cost_words
from nbkit.views.statements.memory import snapshot_words
from nbkit.views.statements.operators import bisection_words, operator_words
from nbkit.views.statements.recorded import recorded_words
from nbkit.views.statements.statement import Tone, Words
from nbkit.views.statements.time import step_words, time_words
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown

OTHER_THREADS = "whose ops are not recorded"  # as capture/step/other_threads.py counts them
LATER_STEPS = (
    "One step was checked, and faults often begin later: watch several with %%opaudit or "
    "`python -m nbkit audit SCRIPT --step STEP`."
)
# Whose questions opdoctor answers, too.
OWN_LOOKS = {"opdoctor": ("opcheck", "opaudit")}
# Figures of a recording that a reader of findings needs; the summary has all.
FIGURES = {
    "step": "{} step",
    "steps": "{} steps",
    "loss": "loss {}",
    "looked into": "{} looked into",
    "aten ops": "{} aten ops",
    "allocations": "{} allocations",
    "allocation": "{} allocation",
    "wall time": "{}",
    **{label: f"{{}} {label}" for label in ("graph", "graphs", "node", "nodes", "edge", "edges", "module", "modules")},
    "left results": "{} left results",
    "right results": "{} right results",
    "device": "{}",
    "devices": "{}",
    "torch": "torch {}",
}


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
    results = {look.verb: look.result(trace) for look in LOOKS}
    verdict, tone = _verdict(trace, found, {verb: text for verb, text in results.items() if text is not None})
    own = str(trace.meta.get("verb"))
    was_run = own != "opcost" and any(len(trace.frames.get(name, ())) for name in ("ops", "steps"))
    unseen = [look for look in LOOKS if results[look.verb] is None]
    owned = OWN_LOOKS.get(own, (own,))
    nothing: list[Words] = [(look.nothing,) for look in unseen if look.verb in owned and _is_missed(trace, look)]
    return Brief(
        _what_ran(trace),
        facts(trace).incomplete,
        (*_another_run(trace), *((*verdict, *nothing) or recorded_words(trace)), *_elsewhere(trace)),
        tone,
        tuple(found),
        left_to_look_at(trace, [look for look in unseen if was_run and look.verb not in owned and look.is_usual]),
        (*(shown(str(limit), LONGEST) for limit in trace.meta.get("limits", [])), *_later_steps(trace, found)),
    )


def _is_missed(trace: Trace, look: Look) -> bool:
    """Returns whether it is to be said that there was nothing to look at: opdoctor says otherwise that no op ran."""
    ops = trace.frames.get("ops", OPS.frame())
    is_trained = look.verb != "opaudit" or ops["phase"].isin(["backward", "optimizer"]).any()
    is_of_doctor = trace.meta.get("verb") == "opdoctor"
    if trace.meta.get("recordings") == []:  # no step was run again, which its limits say
        return False
    return not trace.meta.get("unjudged") and not (is_of_doctor and not ((ops["level"] == "aten").any() and is_trained))


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
    figures = [FIGURES[label].format(value) for label, value in known.figures if label in FIGURES]
    return f"{known.title}: {', '.join(figures) or 'nothing recorded'}."


def _verdict(trace: Trace, found: Sequence[Entry], results: dict[str, str]) -> tuple[list[Words], Tone]:
    """Returns the sentences of the verdict; findings are counted before what was looked at.

    Whether the step agrees with another run stands before all: who names one asks that.
    """
    asked, (seen, tone) = [*bisection_words(trace), *against_words(trace)], seen_values(trace)
    agrees = against_tone(trace)
    said: list[Words] = [
        *time_words(trace),
        *alignment_words(trace),
        *((text,) for text in results.values() if text),
        *seen,
        *step_words(trace),
        *cost_words(trace),
        *snapshot_words(trace),
        *operator_words(trace),
    ]
    if unjudged := trace.meta.get("unjudged"):
        return [*asked, *counted(found), (str(unjudged),), *said], "bad" if tone == "bad" or _is_wrong(found) else ""
    if tone == "bad" or _is_wrong(found):
        return [*asked, *counted(found), *said], "bad"
    if agrees == "bad":
        return [*asked, *said, *counted(found)], "bad"
    if tone == "good" or results.keys() & set(JUDGES):
        until = "" if trace.complete else " until then"
        if found:
            return [*asked, (f"No errors and no warnings{until}.",), *counted(found), *said], "good"
        return [*asked, (f"Nothing wrong found{until}.",), *said], "good"
    return [*asked, *said, *counted(found)], agrees or alignment_tone(trace)


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
