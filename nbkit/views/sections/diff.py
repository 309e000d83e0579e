"""The tables of an opdiff summary: verdicts, and the worst differences first."""

import pandas as pd

from nbkit.analysis.query import diff_table
from nbkit.numerics.noise_ratio import STATUSES
from nbkit.schema import DIFFS
from nbkit.trace.trace import Trace
from nbkit.views.sections.divergence import divergence_sections
from nbkit.views.sections.section import AtMost, Column, Section, columns
from nbkit.views.summary.names import shown


def diff_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the tables of where two runs diverge, of verdicts, and of the worst noise ratios; none without diffs."""
    verdicts = verdict_sections(trace, count)
    return [*verdicts, worst_section(trace, count)] if verdicts else []


def verdict_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the tables of where two runs diverge and of verdicts; none without diffs."""
    diffs = trace.frames.get("diffs", DIFFS.frame())
    if not len(diffs):
        return []
    verdicts = Section("Verdicts", (Column("verdict"), Column("tensors", "count")), verdict_counts(diffs))
    return [*divergence_sections(trace), verdicts]


def worst_section(trace: Trace, count: int) -> Section:
    """Returns the worst differences by verdict and noise ratio."""
    worst = [_values(row) for _, row in worst_first(trace.diffs).head(count).iterrows()]
    numbers = columns("max abs error, max rel error", "number")
    kinds = (*columns("op, verdict"), Column("noise ratio", "ratio"), *numbers)
    return Section("Worst differences", kinds, worst)


def worst_first(diffs: pd.DataFrame) -> pd.DataFrame:
    """Returns rows by verdict, then by noise ratio, largest first; ties keep call order."""
    return diffs.iloc[diff_table.worst_first(diffs)]


def verdict_counts(diffs: pd.DataFrame) -> list[tuple[str, int]]:
    """Returns the number of rows by verdict, from the worst on; one that we do not know comes first."""
    counts = diffs["status"].value_counts()
    ranks = {status: rank for rank, status in enumerate(STATUSES)}
    ordered = sorted(counts.index, key=lambda status: ranks.get(status, -1))
    return [(str(status), int(counts[status])) for status in ordered]


def _values(row: pd.Series) -> list[object]:
    module = f" in {shown(row['module'])}" if isinstance(row["module"], str) and row["module"] else ""
    # Below the threshold opdiff stops as soon as it knows that the error is within rounding.
    ratio = AtMost(row["noise_ratio"]) if row["status"] == "ok" and row["noise_ratio"] > 0 else row["noise_ratio"]
    return [f"{row['op']}{module}", row["status"], ratio, row["max_abs_error"], row["max_rel_error"]]
