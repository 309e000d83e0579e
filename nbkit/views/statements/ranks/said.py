"""Says in words what a job of several ranks is: how many, how long they took, what they spend their time in."""

from collections.abc import Iterator

import pandas as pd

from nbkit import units
from nbkit.trace.job.job import Job
from nbkit.trace.job.ranks import left_out_note, named, world_size
from nbkit.trace.trace import Trace
from nbkit.views.statements.ranks.totals import rank_totals
from nbkit.views.statements.statement import Statement, Words
from nbkit.views.summary.names import ROOT, shown

NAMED = 3


def rank_statements(trace: Trace) -> list[Statement] | None:
    """Says how long the ranks took, what is not there of them, and what they spend their time in."""
    if not isinstance(trace, Job):
        return None
    return [
        Statement("How long the ranks took", tuple(_times(trace)), is_first=True),
        Statement("What the ranks spend their time in", tuple(_spent(trace)), is_first=True),
    ]


def _times(job: Job) -> Iterator[Words]:
    ranks = job.ranks
    read = ranks[ranks["rank"].isin([one.rank for one in job.known if one.rows])]
    times = read.dropna(subset="wall_us")
    count = units.counted(len(ranks), "rank")
    count = count if len(read) == len(ranks) else f"{len(read)} of {count}"
    if times.empty:
        yield (f"{count}; their wall times are not recorded.",)
    else:
        slowest = times.sort_values("wall_us", ascending=False, kind="stable").iloc[0]
        of = "" if len(times) == len(read) else f" (known of {len(times)})"
        yield (
            f"{count}: wall time {units.duration(float(times['wall_us'].median()))} at the median{of}, "
            f"{units.duration(float(slowest['wall_us']))} in the slowest, rank {slowest['rank']}.",
        )
    if (note := left_out_note(job.known)) is not None:
        yield (note,)
    if all(world_size(one) is None for one in job.known):
        yield ("How many ranks the job had is not recorded.",)


def _spent(job: Job) -> Iterator[Words]:
    totals = rank_totals(job)
    if totals is None:
        yield ("No rank has ops.",)
    elif totals.ops["self_time_us"].sum() > 0:
        of = "" if totals.is_all else f"Of so many ops those of {named(totals.ranks)} alone were summed: "
        ops, modules = _shares(totals.ops, "op"), _shares(totals.modules, "module")
        inside = f"; of the time in modules {', '.join(modules)}" if modules else ""
        begin = "of the time in ops" if of else "Of the time in ops"
        yield (f"{of}{begin} {', '.join(ops)}{inside}.",)
    yield from _waits(job)


def _shares(totals: pd.DataFrame, name: str) -> list[str]:
    """Returns the first ones with their share of the time of all: 'aten.mm takes 21 %', 'aten.relu 3 %'."""
    head = totals.head(NAMED)
    names = [shown(str(text)).removesuffix(".default") or ROOT for text in head[name]]
    shares = [units.share(share) for share in head["share"]]
    takes = ["takes ", *[""] * len(names)]
    return [f"{one} {verb}{share}" for one, verb, share in zip(names, takes, shares, strict=False)]


def _waits(job: Job) -> Iterator[Words]:
    """Says what moved between ranks, and who waited least and most for it, as far as that is recorded."""
    if not job.counts.get("collectives"):
        return
    found = job.sql(
        "SELECT rank, count(*) AS calls, sum(size_bytes) AS bytes, sum(wait_us) AS wait_us FROM collectives "
        "GROUP BY rank"
    )
    moved = found["bytes"].dropna()
    size = f" moved {units.data_size(float(moved.sum()))}" if len(moved) else " were called"
    waited = found.dropna(subset="wait_us").sort_values("wait_us")
    text = f"{units.counted(int(found['calls'].sum()), 'collective')}{size}"
    if len(waited) > 1:
        least, most = waited.iloc[0], waited.iloc[-1]
        text += (
            f"; rank {int(least['rank'])} waited least for them ({units.duration(float(least['wait_us']))}), "
            f"rank {int(most['rank'])} most ({units.duration(float(most['wait_us']))})"
        )
    yield (f"{text}.",)
