"""Profiles sum up the columns of the rows that are shown: a small histogram of numbers, the most frequent texts."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from nbkit.analysis.query.encoded import Columns, Floats, TextColumn
from nbkit.analysis.query.matches import Ids

# More rows are sampled evenly: the profile of a million takes as long as that of so many.
SAMPLE = 50_000
BINS = 16
# What sums round differently at the edge of two bins is in the upper one, here and in a report's page.
EDGE = 1e-9
TOP = 3
# Positive numbers whose largest is this many times their smallest are counted over their logarithms.
LOG_SPAN = 100.0


def profiles(columns: Columns, ids: Ids, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Profiles each column over these rows, as widgets/src/table/query/profile.js does in a report."""
    few = sample(ids)
    texts = columns.texts
    return {
        name: _of_texts(texts[name], few) if name in texts else _of_numbers(columns.number(name)[few]) for name in names
    }


def sample(ids: Ids) -> Ids:
    """Returns the rows themselves, or `SAMPLE` of them with even gaps."""
    return ids if len(ids) <= SAMPLE else ids[np.arange(SAMPLE) * len(ids) // SAMPLE]


def _of_texts(texts: TextColumn, ids: Ids) -> dict[str, Any]:
    """Returns the most frequent texts with counts (ties in order), how many differ, how many are missing."""
    counts = np.bincount(texts.codes[ids] + 1, minlength=len(texts.values) + 1)
    missing, counts = int(counts[0]), counts[1:]
    top = np.argsort(-counts, kind="stable")[:TOP]
    frequent = [[str(texts.values.iloc[code]), int(counts[code])] for code in top if counts[code]]
    return {"top": frequent, "different": int(np.count_nonzero(counts)), "missing": missing, "count": len(ids)}


def _of_numbers(values: Floats) -> dict[str, Any]:
    """Counts of equally wide bins from `low` to `high`; what is infinite or missing is in none."""
    known = values[np.isfinite(values)]
    missing = int(np.isnan(values).sum())
    if not len(known):
        return {"bins": [], "low": None, "high": None, "is_log": False, "missing": missing, "count": len(values)}
    low, high = float(known.min()), float(known.max())
    is_log = low > 0 and high / low >= LOG_SPAN
    bins = (
        _counted(np.log(known / low), np.log(high / low), BINS) if is_log else _counted(known - low, high - low, BINS)
    )
    return {"bins": bins, "low": low, "high": high, "is_log": is_log, "missing": missing, "count": len(values)}


def log_spread(values: Floats, bins: int) -> dict[str, Any]:
    """Counts of bins that are equally wide in logarithms, from the smallest positive number `low` to the largest.

    Of what has no logarithm `zero`, `infinite` and `missing` are the counts; no number is negative.
    """
    known = values[np.isfinite(values) & (values > 0)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (1.0, 1.0)
    return {
        "low": low,
        "high": high,
        "bins": _counted(np.log(known / low), np.log(high / low), bins),
        "zero": int((values == 0).sum()),
        "infinite": int(np.isinf(values).sum()),
        "missing": int(np.isnan(values).sum()),
    }


def _counted(scaled: Floats, span: float, bins: int) -> list[int]:
    """Counts of equally wide bins from 0 to `span`; a span of nothing, or beyond what a float can hold, has one."""
    bin_index = np.floor(scaled / span * bins + EDGE) if 0 < span < np.inf else np.zeros(len(scaled))
    counts: list[int] = np.bincount(np.clip(bin_index, 0, bins - 1).astype(np.int64), minlength=bins).tolist()
    return counts
