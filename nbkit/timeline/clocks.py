"""Brings the clocks of hosts together by what no rank leaves before all have come."""

import numpy as np
import pandas as pd

from nbkit.ops.collectives import MEETINGS
from nbkit.schema import table

CLOCKS = table(
    "clocks",
    "rank of a job",
    ("rank", "int64", "the rank"),
    ("offset_us", "float64", "by how much its clock is ahead of that of the first rank; null if unknown"),
    ("error_us", "float64", "by how much this may be off at most; 0 where both are of one host; null if unknown"),
)
MEETING = ["group", "group_ranks", "seq"]


def meetings(collectives: pd.DataFrame, begin_us: np.ndarray) -> pd.DataFrame:
    """Returns the calls that several ranks made of one collective: those of COLLECTIVES with begin_us, end_us, meeting.

    `begin_us` is when each call began, on the clock of its host. Which calls belong together is known from the group
    and the number of the call in it; without a number there are none. end_us is NaN where the end is unknown.
    """
    rows = collectives.assign(begin_us=begin_us, end_us=begin_us + collectives["duration_us"].to_numpy(float))
    is_known = rows["seq"].notna() & rows["op"].isin(MEETINGS) & ~rows["is_p2p"] & np.isfinite(rows["begin_us"])
    rows = rows[is_known]
    rows = rows.assign(meeting=rows.groupby(MEETING, dropna=False, sort=False).ngroup())
    met: pd.DataFrame = rows[rows.groupby("meeting")["rank"].transform("nunique") > 1]
    return met


def clock_offsets(ranks: pd.DataFrame, met: pd.DataFrame) -> pd.DataFrame:
    """Returns CLOCKS: how far the clocks of the ranks are apart, from `ranks` (rank, host) and `meetings`.

    Ranks of one host have one clock. Between two hosts each meeting gives two bounds, as nobody ends before all have
    begun; the offset is the middle of the narrowest, and its error half of what is between them. What align_clocks()
    measured is a pair of bounds, too: clock_offset_us and clock_error_us of `ranks`, where they are there.
    """
    hosts = ranks["host"].astype(object).where(ranks["host"].notna(), ranks["rank"].astype(str))
    names = list(dict.fromkeys(hosts))
    of_rank = dict(zip(ranks["rank"], hosts, strict=True))
    most = _most_ahead(met.assign(host=met["rank"].map(of_rank)), names)
    if "clock_offset_us" in ranks:
        offset, error = ranks["clock_offset_us"].astype(float), ranks["clock_error_us"].astype(float)
        ahead = (offset + error).groupby(hosts).min().reindex(names).to_numpy()
        behind = (offset - error).groupby(hosts).max().reindex(names).to_numpy()
        most = np.fmin(most, ahead[:, None] - behind)
    most = _by_way_of_others(most)
    upper, lower = most[:, 0], -most[0, :]
    is_known = np.isfinite(upper) & np.isfinite(lower)
    upper, lower = np.where(is_known, upper, np.nan), np.where(is_known, lower, np.nan)
    middle, half = (upper + lower) / 2, np.abs(upper - lower) / 2  # a clock that was set meanwhile may turn bounds over
    of_hosts = pd.DataFrame({"offset_us": middle, "error_us": half}, index=names)
    return CLOCKS.check(of_hosts.loc[hosts].reset_index(drop=True).assign(rank=ranks["rank"].to_numpy())[CLOCKS.names])


def _most_ahead(met: pd.DataFrame, names: list[str]) -> np.ndarray:
    """Returns by how much the clock of each host (row) can be ahead of each other's (column), inf if unknown."""
    met = met[np.isfinite(met["end_us"])]
    most = np.full((len(names), len(names)), np.inf)
    if len(met):
        first_end = met.pivot_table(index="meeting", columns="host", values="end_us", aggfunc="min")
        last_begin = met.pivot_table(index="meeting", columns="host", values="begin_us", aggfunc="max")
        first_end, begins = first_end.reindex(columns=names), last_begin.reindex(columns=names).to_numpy()
        for at, name in enumerate(names):
            bounds = first_end[name].to_numpy()[:, None] - begins
            most[at] = np.where(np.isnan(bounds), np.inf, bounds).min(axis=0)
    return most


def _by_way_of_others(most: np.ndarray) -> np.ndarray:
    """Returns the same with what is known of two by way of a third."""
    np.fill_diagonal(most, 0.0)
    for through in range(len(most)):
        most = np.minimum(most, most[:, through : through + 1] + most[through : through + 1, :])
    return most
