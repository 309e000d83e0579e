"""Finds collectives to which one rank comes late, and what the others wait for it."""

from collections.abc import Iterator

import pandas as pd

from nbkit import units
from nbkit.findings.finding import PLACE, Finding, rule
from nbkit.findings.ranks.facts import JobFacts

LATE = (
    "Look at what that rank does before the call; the findings straggler and wandering_straggler name the module where "
    "the ranks' times tell it."
)
# Of a step, below which waiting is no finding.
LEAST_SHARE, LEAST_US = 0.1, 200.0
MOST_SITES = 5
SITE = ["group", *PLACE]


@rule("hint", rank=30)
def waiting(job: JobFacts) -> Iterator[Finding]:
    """The ranks wait for the last one in collectives: 10 % of a step or more, in the median rank."""
    came = job.arrivals
    if not len(came):
        return
    of_rank = came.groupby("rank")["waited_us"].sum() / job.steps
    waited_us = float(of_rank.median())
    if waited_us < max(LEAST_US, LEAST_SHARE * job.step_us):
        return
    last, count, whole = _last(came)
    message = (
        f"the median rank waits {units.duration(waited_us)} of {units.duration(job.step_us)} a step in collectives for "
        f"ranks that come later; {_who(last, count, whole)}"
    )
    evidence = {"rank": last, "waited_us": of_rank.round(1).to_dict()}
    yield waiting.finding(message, LATE, evidence=evidence, effect_us=waited_us, count=whole)


@rule("hint", rank=40)
def skewed_collective(job: JobFacts) -> Iterator[Finding]:
    """The ranks come to a collective of one line at different times, 0.2 ms and 10 % of a step or more in the median,
    and more than their clocks may differ.
    """
    found = []
    for _, rows in job.arrivals.groupby(SITE, dropna=False, sort=False):
        skews = rows.groupby("meeting")["late_us"].max()
        skew_us = float(skews.median())
        effect_us = float(skews.sum()) / job.steps
        if skew_us < LEAST_US or effect_us < LEAST_SHARE * job.step_us:
            continue
        last, count, whole = _last(rows)
        first = rows.iloc[0]
        message = (
            f"ranks come to {first['op']} of {first['group']} {units.duration(skew_us)} apart; "
            f"{_who(last, count, whole)}"
        )
        place = {
            name: first[name] if isinstance(first[name], str) else None for name in ("op", "module", "phase", "source")
        }
        evidence = {"rank": last, "skew_us": round(skew_us, 1), "calls": whole}
        found.append(
            skewed_collective.finding(message, LATE, evidence=evidence, effect_us=effect_us, count=whole, **place)
        )
    yield from sorted(found, key=lambda finding: -(finding.effect_us or 0.0))[:MOST_SITES]


def _last(came: pd.DataFrame) -> tuple[int, int, int]:
    """Returns which rank comes last most often, how often, and of how many meetings."""
    last = came.loc[came.groupby("meeting")["arrived_us"].idxmax(), "rank"].value_counts()
    return int(last.index[0]), int(last.iloc[0]), int(last.sum())


def _who(last: int, count: int, whole: int) -> str:
    if 2 * count <= whole:
        return f"no rank comes last to most of {units.counted(whole, 'collective')}"
    return f"rank {last} comes last to {units.out_of(count, whole)} collectives"
