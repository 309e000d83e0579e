"""Groups the traces of a report by the step that they recorded, so that different models are named apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from nbkit import units
from nbkit.analysis.cost.op_totals import has_costs
from nbkit.schema import OPS
from nbkit.views.report.chapter import Chapter
from nbkit.views.report.front.times import is_timed
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.names import shown

# Recordings of one step may differ by a module that one verb sees and another does not; models differ by more.
MOST_APART = 0.2
Modules = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class RecordedStep:
    """Holds the traces of one step: its name, the paths of the modules that ran, and the chapters."""

    name: str
    modules: Modules
    chapters: list[Chapter]

    @property
    def models(self) -> list[str]:
        """Returns the names of the models, in order."""
        return sorted({model for model, _ in self.modules})

    @property
    def timed(self) -> Chapter | None:
        """Returns the chapter whose times are shown: that of optime; else of the first with ops, which are not its.

        Those of opcost, whose step did not run, are never shown.
        """
        with_ops = [
            chapter for chapter in self.chapters if len(_ops(chapter)) and not has_costs(chapter.contents.trace)
        ]
        timed = (chapter for chapter in with_ops if is_timed(chapter.contents.trace))
        return next(timed, None) or next(iter(with_ops), None)


def recorded_steps(chapters: Sequence[Chapter]) -> list[RecordedStep]:
    """Returns the steps in the order of their first chapters; chapters with nothing to show are in none.

    Traces of one name are of one step if they recorded (nearly) the same modules of the same models.
    """
    steps: list[RecordedStep] = []
    for chapter in chapters:
        trace = chapter.contents.trace
        if view_of(trace).is_empty(trace):
            continue
        name, modules = str(trace.meta.get("name") or ""), _modules(_ops(chapter))
        found = next((step for step in steps if step.name == name and _are_alike(step.modules, modules)), None)
        if found is None:
            steps.append(RecordedStep(name, modules, [chapter]))
        else:
            found.chapters.append(chapter)
    return steps


def titles(steps: Sequence[RecordedStep]) -> list[str]:
    """Names each step by its name and models; of those that would be called the same, by what tells them apart."""
    texts = [[shown(text) for text in (step.name, *step.models) if text] or ["Recording"] for step in steps]
    names = [", ".join(dict.fromkeys(several)) for several in texts]
    return [
        f"{name} ({units.counted(len(step.modules), 'module')})" if names.count(name) > 1 and step.modules else name
        for name, step in zip(names, steps, strict=True)
    ]


def _ops(chapter: Chapter) -> pd.DataFrame:
    return chapter.contents.trace.frames.get("ops", OPS.frame())


def _modules(ops: pd.DataFrame) -> Modules:
    pairs = ops[["model", "module"]].dropna().drop_duplicates()
    return frozenset(zip(pairs["model"].astype(str), pairs["module"].astype(str), strict=True))


def _are_alike(left: Modules, right: Modules) -> bool:
    return len(left ^ right) <= max(1, MOST_APART * len(left | right))
