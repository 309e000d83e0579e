"""Changes: what a report says in words of a trace beside an earlier one."""

import pandas as pd

from nbkit.analysis.time.compare_times import compare_times
from nbkit.trace.trace import Trace
from nbkit.views.sections.difference import is_different
from nbkit.views.sections.section import module_names
from nbkit.views.summary import units
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown
from nbkit.views.summary.statement import Statement, Words

LARGEST = 3


def changes(trace: Trace, base: Trace) -> Statement:
    """The whole time of both, and the modules that changed most, if any did by more than noise."""
    times = compare_times(base, trace)
    before, now = (units.duration(float(times[name].sum())) for name in ("left_us", "right_us"))
    whole: Words = (f"{now} in all, {before} in {facts(base).title}.",)
    differs = times[is_different(times)]
    if len(differs):
        return Statement("What changed", (whole, ("Most by itself: ", ", ".join(_largest(differs)), ".")))
    is_judged = bool(times["verdict"].notna().any())
    nothing = "No module changed beyond noise." if is_judged else "Whether that is more than noise is not known."
    return Statement("What changed", (whole, (nothing,)))


def _largest(differs: pd.DataFrame) -> list[str]:
    order = differs["change_us"].abs().sort_values(ascending=False, kind="stable").index
    most = differs.loc[order[:LARGEST]]
    rows = zip(module_names(most), most["phase"], most["change_us"], strict=True)
    return [f"{name} ({shown(str(phase))}) {units.change(change_us)}" for name, phase, change_us in rows]
