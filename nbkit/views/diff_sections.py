"""The tables of an opdiff summary: verdicts, and the worst differences first."""

import pandas as pd

from nbkit.schema import DIFFS
from nbkit.trace import Trace
from nbkit.views.names import shown
from nbkit.views.sections import Section

# From the worst to what needs no look.
STATUSES = ("mismatch", "shape", "dtype", "failed", "reduced", "ok", "skipped")


def diff_sections(trace: Trace, count: int) -> list[Section]:
    """How many tensors got which verdict, and the worst by verdict and noise ratio; none without diffs."""
    diffs = trace.frames.get("diffs", DIFFS.frame())
    if not len(diffs):
        return []
    found = diffs["status"].value_counts()
    verdicts = [[status, f"{found[status]:,}"] for status in STATUSES if status in found]
    worst = [_texts(row) for _, row in worst_first(diffs).head(count).iterrows()]
    return [
        Section("Verdicts", "verdict", ("tensors",), verdicts),
        Section("Worst differences", "op", ("verdict", "noise ratio", "max abs error", "max rel error"), worst),
    ]


def worst_first(diffs: pd.DataFrame) -> pd.DataFrame:
    """Rows by verdict, then by noise ratio, largest first; ties keep call order."""
    ranks = {status: rank for rank, status in enumerate(STATUSES)}
    keys = pd.DataFrame({"rank": diffs["status"].map(ranks), "noise": -diffs["noise_ratio"]})
    return diffs.loc[keys.sort_values(["rank", "noise"], kind="stable").index]


def _texts(row: pd.Series) -> list[str | None]:
    place = f" in {shown(row['module'])}" if isinstance(row["module"], str) and row["module"] else ""
    errors = [row[name] for name in ("noise_ratio", "max_abs_error", "max_rel_error")]
    return [f"{shown(row['op'])}{place}", row["status"], *(None if pd.isna(one) else f"{one:.3g}" for one in errors)]
