"""The tables of an opdiff summary: verdicts, and the worst differences first."""

import pandas as pd

from nbkit.analysis.query import diff_table
from nbkit.numerics.noise_ratio import STATUSES
from nbkit.schema import DIFFS
from nbkit.trace.trace import Trace
from nbkit.views.sections.divergence import divergence_sections
from nbkit.views.sections.section import Section
from nbkit.views.summary.names import shown


def diff_sections(trace: Trace, count: int) -> list[Section]:
    """Where the step and another run part, verdicts by count, and the worst by noise ratio; none without diffs."""
    found = verdict_sections(trace, count)
    return [*found, worst_section(trace, count)] if found else []


def verdict_sections(trace: Trace, count: int) -> list[Section]:
    """Where the step and another run part, and verdicts by count; none without diffs."""
    diffs = trace.frames.get("diffs", DIFFS.frame())
    if not len(diffs):
        return []
    verdicts = [[status, f"{count:,}"] for status, count in verdict_counts(diffs)]
    return [*divergence_sections(trace), Section("Verdicts", "verdict", ("tensors",), verdicts)]


def worst_section(trace: Trace, count: int) -> Section:
    """The worst differences by verdict and noise ratio."""
    worst = [_texts(row) for _, row in worst_first(trace.diffs).head(count).iterrows()]
    figures = ("verdict", "noise ratio", "max abs error", "max rel error")
    return Section("Worst differences", "op", figures, worst)


def worst_first(diffs: pd.DataFrame) -> pd.DataFrame:
    """Rows by verdict, then by noise ratio, largest first; ties keep call order."""
    return diffs.iloc[diff_table.worst_first(diffs)]


def verdict_counts(diffs: pd.DataFrame) -> list[tuple[str, int]]:
    """Number of rows by verdict, from the worst on; one that we do not know comes first."""
    found = diffs["status"].value_counts()
    places = {status: place for place, status in enumerate(STATUSES)}
    return [(str(status), int(found[status])) for status in sorted(found.index, key=lambda one: places.get(one, -1))]


def _texts(row: pd.Series) -> list[str | None]:
    place = f" in {shown(row['module'])}" if isinstance(row["module"], str) and row["module"] else ""
    errors = [row[name] for name in ("noise_ratio", "max_abs_error", "max_rel_error")]
    return [f"{shown(row['op'])}{place}", row["status"], *(None if pd.isna(one) else f"{one:.3g}" for one in errors)]
