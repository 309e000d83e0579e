"""Writes the first screen: what ran, how long a step takes, the verdicts, and the findings with their lines."""

from collections.abc import Sequence
from html import escape

from nbkit import units
from nbkit.views.brief.entry import Entry, severity_rank
from nbkit.views.brief.html import findings_html, incomplete_html
from nbkit.views.report.chapter import Chapter
from nbkit.views.report.front.steps import RecordedStep, titles
from nbkit.views.report.front.times import step_time, times_html
from nbkit.views.statements.statement import Chip, statements_html
from nbkit.views.statements.subjects import SUBJECTS
from nbkit.views.summary.counting import is_timeline
from nbkit.views.summary.names import shown

# As many as a reader takes in at once; the sections of the traces have all.
MOST_FINDINGS = 5


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
    verbs = {subject.look.verb for subject in SUBJECTS if subject.look is not None and subject.judges}
    is_asked = any(chapter.contents.trace.meta.get("verb") in verbs for chapter in step.chapters)
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


def chips_of(chapter: Chapter) -> list[Chip]:
    """Returns the verdicts of a trace: whether it is whole, then those of its subjects."""
    trace = chapter.contents.trace
    chips = [] if trace.complete else [Chip("incomplete", "bad")]
    return chips + [chip for subject in SUBJECTS if subject.is_of(trace) for chip in subject.chips(trace)]
