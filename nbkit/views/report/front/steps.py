"""Groups the traces of a report by the step that they recorded, so that different models are named apart."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from nbkit import units
from nbkit.analysis.cost.op_totals import has_costs
from nbkit.schema import OPS
from nbkit.views.report.chapter import Chapter
from nbkit.views.report.front.identity import Identity, are_alike, identity_of
from nbkit.views.report.front.times import is_timed
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.names import shown

MOST_MODELS = 3


@dataclass(frozen=True)
class RecordedStep:
    """Holds the traces of one step: the name that somebody gave it, else "", what each recorded, and the chapters."""

    name: str
    identities: list[Identity]
    chapters: list[Chapter]

    @property
    def modules(self) -> int:
        """Returns how many modules ran, with those that only hold others, where a recording knows them."""
        return max(max(len(identity.modules), len(identity.params)) for identity in self.identities)

    @property
    def models(self) -> list[str]:
        """Returns the names of the models, the one with most modules first: a loss may be a module, too."""
        counts = Counter(model for model, _ in self.identities[0].modules)
        return sorted(counts, key=lambda model: (-counts[model], model))

    @property
    def kind(self) -> str:
        """Says which phases ran; empty where no phase is known."""
        phases = frozenset[str]().union(*(identity.phases for identity in self.identities))
        if "optimizer" in phases:
            return "training step" if phases >= {"forward", "backward"} else "optimizer step"
        return " and ".join(phase for phase in ("forward", "backward") if phase in phases)

    @property
    def timed(self) -> list[Chapter]:
        """Returns the chapters whose times are shown: those of optime; else the first with ops, which are not its.

        Those of opcost, whose step did not run, are never shown.
        """
        with_ops = [
            chapter for chapter in self.chapters if len(_ops(chapter)) and not has_costs(chapter.contents.trace)
        ]
        return [chapter for chapter in with_ops if is_timed(chapter.contents.trace)] or with_ops[:1]


def recorded_steps(chapters: Sequence[Chapter]) -> list[RecordedStep]:
    """Returns the steps in the order of their first chapters; chapters with nothing to show are in none.

    Traces that somebody gave one name are of one step if they have (nearly) the same modules; those without a name are
    of the step, if there is exactly one, that has all that they recorded.
    """
    with_rows = [part for part in chapters if not view_of(part.contents.trace).is_empty(part.contents.trace)]
    steps: list[RecordedStep] = []
    for chapter in sorted(with_rows, key=lambda chapter: not _given_name(chapter)):
        name, identity = _given_name(chapter), identity_of(chapter.contents.trace)
        found = [step for step in steps if _is_of(step, name, identity)]
        if len(found) == 1:
            found[0].identities.append(identity)
            found[0].chapters.append(chapter)
        else:
            steps.append(RecordedStep(name, [identity], [chapter]))
    for step in steps:
        step.chapters.sort(key=with_rows.index)
    return sorted(steps, key=lambda step: with_rows.index(step.chapters[0]))


def titles(steps: Sequence[RecordedStep]) -> list[str]:
    """Names each step by its name and models; of those that would be called the same, by what tells them apart."""
    names = [_title(step) for step in steps]
    return [
        f"{name} ({units.counted(step.modules, 'module')})" if names.count(name) > 1 and step.modules else name
        for name, step in zip(names, steps, strict=True)
    ]


def _title(step: RecordedStep) -> str:
    most = step.models[:MOST_MODELS]
    models = ", ".join(map(shown, [*most, *(["..."] if len(step.models) > len(most) else [])]))
    if step.name:
        return ", ".join(dict.fromkeys(text for text in (shown(step.name), models) if text))
    if step.kind and models:
        return f"{models}: {step.kind}"
    return models or (step.kind and step.kind.capitalize()) or "Recording"


def _is_of(step: RecordedStep, name: str, identity: Identity) -> bool:
    if name:
        return step.name == name and are_alike(step.identities[0].modules, identity.modules)
    return all(identity.is_of_step(known) for known in step.identities)


def _given_name(chapter: Chapter) -> str:
    """Returns the name that somebody gave a trace; verbs give theirs to those without one."""
    meta = chapter.contents.trace.meta
    name = str(meta.get("name") or "")
    return "" if name == meta.get("verb") else name


def _ops(chapter: Chapter) -> pd.DataFrame:
    return chapter.contents.trace.frames.get("ops", OPS.frame())
