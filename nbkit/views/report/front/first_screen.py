"""Writes the first screen: what ran, how long a step takes, the verdicts, and the findings with their lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from nbkit import units
from nbkit.analysis.values.non_finite import non_finite
from nbkit.findings.causes import causes_of
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.schema import DIFFS, FINDINGS, PARAMETERS, TENSORS
from nbkit.trace.trace import Trace
from nbkit.views.brief.entry import Entry, severity_rank
from nbkit.views.brief.html import findings_html, incomplete_html
from nbkit.views.brief.looks import JUDGES
from nbkit.views.report.chapter import Chapter
from nbkit.views.report.front.steps import RecordedStep, titles
from nbkit.views.report.front.times import step_time, times_html
from nbkit.views.statements.statement import Tone, statements_html
from nbkit.views.summary.counting import is_timeline
from nbkit.views.summary.names import shown

# As many as a reader takes in at once; the sections of the traces have all.
MOST_FINDINGS = 5
# What opcheck's rules find, in the words of a chip.
KINDS = {
    "nan": "NaN begins in {}",
    "inf": "Inf begins in {}",
    "underflow": "values underflow in {}",
    "saturated": "values do not fit in {}",
    "wrapped": "integers wrap in {}",
    "input": "NaN or Inf comes in at {}",
}


def first_screen(steps: Sequence[RecordedStep], chapters: Sequence[Chapter]) -> str:
    """Writes what a reader of the report sees first: a block for each step, and links to the sections.

    Those of a single step stand below what is wrong and how long it takes, those of several above all.
    """
    is_alone = len(steps) == 1
    contents = _contents(chapters) if len(chapters) > 1 else ""
    named = zip(steps, titles(steps), strict=True)
    blocks = "".join(_block(step, "" if is_alone else title, contents if is_alone else "") for step, title in named)
    return f'{"" if is_alone else contents}<div class="nbkit-front">{blocks}</div>'


def _block(step: RecordedStep, title: str, contents: str) -> str:
    head = f"<h2>{escape(title)}</h2>" if title else ""
    # A timeline has the time of Python and of modules, too.
    timed = sorted(step.timed, key=lambda chapter: not is_timeline(chapter.contents.trace.ops))[:1]
    times = "".join(map(times_html, timed))
    return (
        f"<section>{head}{_about(step)}{_verdict(step)}{_step_times(step)}{_chips(step)}{contents}"
        f"{_answers(step)}{times}</section>"
    )


def _about(step: RecordedStep) -> str:
    """Names size, machine, versions and date."""
    metas = [chapter.contents.trace.meta for chapter in step.chapters]
    devices = dict.fromkeys(str(device) for meta in metas for device in meta.get("devices") or [])
    versions = dict(pair for meta in metas for pair in (meta.get("versions") or {}).items())
    created = next((str(meta["created"]) for meta in metas if meta.get("created")), "")
    parts = [
        units.counted(step.modules, "module") if step.modules else "",
        f"on {', '.join(devices)}" if devices else "",
        next((str(meta["machine"]) for meta in metas if meta.get("machine")), ""),
        *(f"{name} {version}" for name, version in versions.items() if name in ("torch", "nbkit")),
        created.replace("T", " ").replace("+00:00", " UTC"),
    ]
    return f'<p class="nbkit-about">{" · ".join(escape(shown(part)) for part in parts if part)}</p>'


def _step_times(step: RecordedStep) -> str:
    """Writes the time of a step; of several recordings with times each one's, with a link to it."""
    several = len(step.timed) > 1
    return "".join(_step_time(chapter, is_named=several) for chapter in step.timed)


def _step_time(chapter: Chapter, *, is_named: bool) -> str:
    trace = chapter.contents.trace
    time, how = step_time(trace)
    if not time and not is_timeline(trace.ops) and "wall_us" not in trace.meta:
        return ""
    name = f'<a href="#{chapter.anchor}">{escape(chapter.title)}</a>: ' if is_named else ""
    return f'<p class="nbkit-step">{name}{f"<b>{escape(time)}</b> " if time else ""}{escape(how)}</p>'


def _answers(step: RecordedStep) -> str:
    """Writes what a graph is, and what changed since the base."""
    return "".join(statements_html(part.answers, part.anchor) for part in step.chapters if part.answers)


def _chips(step: RecordedStep) -> str:
    """Writes the verdicts; what several traces say alike stands once."""
    anchors = {chip: chapter.anchor for chapter in reversed(step.chapters) for chip in reversed(chips_of(chapter))}
    items = [
        f'<li class="nbkit-{chip.tone or "neutral"}"><a href="#{anchor}">{escape(chip.text)}</a></li>'
        for chip, anchor in reversed(anchors.items())
    ]
    return f'<ul class="nbkit-chips" aria-label="Verdicts">{"".join(items)}</ul>' if items else ""


def _verdict(step: RecordedStep) -> str:
    """Writes the worst findings of all traces of the step, and what nobody has looked at."""
    found = worst_findings(step)
    more = len(_findings(step)) - len(found)
    items = "".join(findings_html([entry], chapter.anchor) for chapter, entry in found)
    rest = f"{units.counted(more, 'further finding')} below." if more else ""
    until = "" if all(chapter.brief.incomplete is None for chapter in step.chapters) else " until then"
    nothing = f"<p>Nothing wrong found{until}.</p>" if _is_judged(step) and not found else ""
    asides = "".join(
        f'<p class="nbkit-aside">{escape(text)}</p>' for text in (rest, *_unjudged(step), _not_looked_at(step)) if text
    )
    early = "".join(incomplete_html(chapter.brief) for chapter in step.chapters)
    return f'<div class="nbkit-brief">{early}{nothing}{f"<ol>{items}</ol>" if items else ""}{asides}</div>'


def worst_findings(step: RecordedStep) -> list[tuple[Chapter, Entry]]:
    """Returns the findings that the first screen shows, errors first, with their chapters."""
    return sorted(_findings(step), key=lambda pair: severity_rank(pair[1].severity))[:MOST_FINDINGS]


def _findings(step: RecordedStep) -> list[tuple[Chapter, Entry]]:
    """Returns the findings of all traces; what two of them find alike, at one place, is of the first one."""
    owners: dict[tuple[str, ...], Chapter] = {}
    return [
        (chapter, entry)
        for chapter in step.chapters
        for entry in chapter.brief.entries
        # Without a place two may be of different ops.
        if owners.setdefault(_key(entry), chapter) is chapter or not entry.where
    ]


def _key(entry: Entry) -> tuple[str, ...]:
    """Returns what is alike of a finding in recordings of one step: how often and how long it was so is not."""
    return tuple(str(entry.row[name]) for name in ("rule", "op", "parameter", "module", "phase", "source"))


def _is_judged(step: RecordedStep) -> bool:
    is_asked = any(chapter.contents.trace.meta.get("verb") in JUDGES for chapter in step.chapters)
    return is_asked and not _unjudged(step) and all(chapter.brief.tone != "bad" for chapter in step.chapters)


def _unjudged(step: RecordedStep) -> list[str]:
    """Returns what a verb was to look at and could not, each in a sentence."""
    texts = (chapter.contents.trace.meta.get("unjudged") for chapter in step.chapters)
    return list(dict.fromkeys(str(text) for text in texts if text))


def _not_looked_at(step: RecordedStep) -> str:
    first, *others = [chapter.brief.missing for chapter in step.chapters]
    left = [look for look in first if all(look in missing for missing in others)]
    text = ", ".join(f"{look.short} (nbkit.{look.verb})" for look in left)
    return f"Not looked at: {text}." if text else ""


def _contents(chapters: Sequence[Chapter]) -> str:
    items = "".join(f'<li><a href="#{part.anchor}">{escape(part.title)}</a></li>' for part in chapters)
    return f'<nav aria-label="Contents"><ul class="nbkit-overview">{items}</ul></nav>'


@dataclass(frozen=True)
class Chip:
    """A verdict in a few words, and whether it is bad or good; it leads to the section of its trace."""

    text: str
    tone: Tone


def chips_of(chapter: Chapter) -> list[Chip]:
    """Returns the verdicts of a trace: whether it is whole, its values, differences, training, and time to be saved."""
    trace = chapter.contents.trace
    chips = [] if trace.complete else [Chip("incomplete", "bad")]
    return [*chips, *_values(trace), *_differences(trace), *_training(trace), *_time(trace)]


def _values(trace: Trace) -> Iterator[Chip]:
    checked = int(trace.meta.get("checked_tensors", 0))
    if checked:
        findings = _causes(trace)
        is_rule = [(text, findings["rule"] == rule) for rule, text in KINDS.items()]
        found = [(text, findings[of]) for text, of in is_rule if of.any()]
        for text, rows in found:
            # A hint, such as what overflows under a GradScaler, is nothing wrong.
            is_bad = (rows["severity"] != "hint").any()
            yield Chip(text.format(units.counted(len(rows), "op")), "bad" if is_bad else "")
        if not found:
            yield Chip(f"no NaN or Inf begins in {units.counted(checked, 'result')}", "good")
        return
    counts = non_finite(trace.frames.get("tensors", TENSORS.frame()))
    results = units.counted(counts.looked_at, "result")
    if counts.nan_count:
        yield Chip(f"NaN in {units.count(counts.nan_count)} of {results}", "bad")
    if counts.inf_count:
        yield Chip(f"Inf in {units.count(counts.inf_count)} of {results}", "")


def _differences(trace: Trace) -> Iterator[Chip]:
    diffs = DIFFS.check(trace.frames.get("diffs", DIFFS.frame()))
    compared = diffs[diffs["status"] != "skipped"]
    if len(compared):
        wrong = int((~compared["status"].isin(HARMLESS)).sum())
        noun = "mismatch" if wrong == 1 else "mismatches"
        text = f"{units.count(wrong)} {noun} in {units.counted(len(compared), 'tensor')}"
        yield Chip(text, "bad" if wrong else "good")


def _training(trace: Trace) -> Iterator[Chip]:
    parameters = PARAMETERS.check(trace.frames.get("parameters", PARAMETERS.frame()))
    if not len(parameters):
        return
    severities = _causes(trace)["severity"].value_counts()
    counts = [(name, int(severities.get(name, 0))) for name in ("error", "warning")]
    bad = ", ".join(units.counted(number, name) for name, number in counts if number)
    whole = units.counted(
        int(((parameters["kind"] == "parameter") & parameters["tied_with"].isna()).sum()), "parameter"
    )
    yield Chip(f"{bad} in training" if bad else f"no error or warning in {whole}", "bad" if bad else "good")


def _time(trace: Trace) -> Iterator[Chip]:
    if trace.meta.get("verb") == "optime" and (hints := len(_causes(trace))):
        yield Chip(f"{units.counted(hints, 'hint')} at time or memory to save", "")


def _causes(trace: Trace) -> pd.DataFrame:
    """Returns the causes among the findings."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    return findings[causes_of(findings)["cause"].isna().to_numpy()]
