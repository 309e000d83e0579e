"""Sums what the ranks of a job spend their time in, by op and by module."""

from typing import NamedTuple

import pandas as pd

from nbkit.trace.job.job import Job
from nbkit.trace.once import once_per_view
from nbkit.trace.trace import Trace

# Ops of a job up to which all ranks are summed for what is said first; of a larger one the slowest and the median one.
MANY = 20_000_000
HOST = "level IS DISTINCT FROM 'kernel'"  # work on a device runs beside the host and would count double


class RankTotals(NamedTuple):
    """Holds the ranks that were summed, and what their ops and modules took.

    `ops`: op, calls, self_time_us. `modules`: model, module, calls, self_time_us, and of its time per rank median_us,
    slowest_us and slowest_rank. Both with the most time first, and `share`: of the time of all ops, or modules, there.
    """

    ranks: list[int]
    is_all: bool
    ops: pd.DataFrame
    modules: pd.DataFrame


@once_per_view
def rank_totals(job: Trace, /) -> RankTotals | None:
    """Returns what the ranks spend their time in; null for a job without ops."""
    if not isinstance(job, Job) or not job.first_rows:
        return None
    ranks = [*job.first_rows]
    if job.counts["ops"] > MANY:
        ranks = sorted({job.slowest, median_rank(job)})
    among = f"{HOST} AND rank IN ({', '.join(map(str, ranks))})"
    totals = job.sql(
        f"SELECT rank, level, op, model, module, count(*) AS calls, sum(self_time_us) AS us FROM ops WHERE {among} "
        "GROUP BY ALL"
    )
    return RankTotals(ranks, len(ranks) == len(job.first_rows), *_summed(totals))


def _summed(totals: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    computing = totals[totals["level"] == "aten"] if (totals["level"] == "aten").any() else totals
    sums = {"calls": ("calls", "sum"), "self_time_us": ("us", "sum")}
    ops = computing.groupby("op", as_index=False, dropna=False).agg(**sums)
    inside = totals.dropna(subset="module")
    of_rank = inside.groupby(["model", "module", "rank"], as_index=False, dropna=False).agg(**sums)
    slowest = of_rank.sort_values("self_time_us", ascending=False).drop_duplicates(["model", "module"])
    modules = of_rank.groupby(["model", "module"], as_index=False, dropna=False).agg(
        calls=("calls", "sum"), self_time_us=("self_time_us", "sum"), median_us=("self_time_us", "median")
    )
    slowest = slowest.rename(columns={"rank": "slowest_rank", "self_time_us": "slowest_us"}).drop(columns="calls")
    modules = modules.merge(slowest, on=["model", "module"])
    return _most_first(ops), _most_first(modules)


def _most_first(totals: pd.DataFrame) -> pd.DataFrame:
    ordered = totals.sort_values("self_time_us", ascending=False, kind="stable").reset_index(drop=True)
    return ordered.assign(share=ordered["self_time_us"] / (ordered["self_time_us"].sum() or 1.0))


def median_rank(job: Job) -> int:
    """Returns the rank with ops whose wall time is in the middle; the first one where no times are known."""
    ranks = job.ranks[job.ranks["rank"].isin([*job.first_rows])]
    times = ranks.dropna(subset="wall_us").sort_values("wall_us", kind="stable")["rank"]
    return int(times.iloc[(len(times) - 1) // 2] if len(times) else ranks["rank"].iloc[0])
