"""Finds a rank that takes longer than the others for the same module."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit import units
from nbkit.findings.finding import Finding, rule
from nbkit.findings.ranks.facts import JobFacts

Floats = npt.NDArray[np.float64]

ADVICE = (
    "Look at that line in that rank alone: more data, other shapes, another device, a slower disk or lock; the other "
    "ranks wait for it in the next collective."
)
# Nearly all calls above the others' median by so much, and by so much of the step: noise comes and goes.
NEARLY_ALL = 0.1
LEAST_US, LEAST_SHARE, OF_SPREAD, OF_OTHERS = 200.0, 0.02, 2.0, 0.3
# Of fewer calls a pause of the machine cannot be told from a straggler.
FEWEST_CALLS = 4
# Where it is another rank each time, in so many of the calls.
OFTEN = 0.6
# And by so many times what the next module has.
STANDS_OUT = 3.0


@dataclass(frozen=True)
class Member:
    """Describes the calls of one module in one rank."""

    rank: int
    module: str
    samples: Floats
    source: str | None

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.samples, share))


@rule("warning", rank=10)
def straggler(job: JobFacts) -> Iterator[Finding]:
    """One rank takes longer for a module than the others do for theirs: by 0.2 ms and 2 % of the work of a step or
    more, beyond what its calls and theirs vary.
    """
    found = [_excess(job, group, clock) for clock in ("self_us", "device_us") for group in _groups(job, clock)]
    worst: dict[tuple[int, str], tuple[float, Finding]] = {}
    for effect_us, finding in (one for some in found for one in some):
        key = finding.evidence["rank"], str(finding.module)
        if effect_us > worst.get(key, (0.0, None))[0]:
            worst[key] = effect_us, finding
    for _, finding in sorted(worst.values(), key=lambda one: -one[0]):
        yield finding


def _groups(job: JobFacts, clock: str) -> Iterator[list[Member]]:
    """Yields the calls that should take the same time: of a module in all ranks, or of its like where one rank has it.

    Modules are alike that have the same class and as many parameters.
    """
    times = job.times
    members = [
        Member(int(rows["rank"].iloc[0]), rows["module"].iloc[0], rows[clock].to_numpy(), _first(rows["source"]))
        for _, rows in times.groupby(["rank", "module"], sort=False)
    ]
    holders = times.groupby("module")["rank"].nunique()
    kinds = job.modules.set_index(["rank", "module"])[["type", "params"]].apply(tuple, axis=1).to_dict()
    groups: dict[object, list[Member]] = {}
    for one in members:
        is_shared = holders[one.module] > 1
        key = one.module if is_shared else kinds.get((one.rank, one.module), (one.rank, one.module))
        groups.setdefault(key, []).append(one)
    for group in groups.values():
        if len({one.rank for one in group}) > 1:
            yield group


def _first(texts: pd.Series) -> str | None:
    return next(iter(texts.dropna()), None)


def _excess(job: JobFacts, group: list[Member], clock: str) -> Iterator[tuple[float, Finding]]:
    """Yields what takes longer than its group, with the time of a step that it costs."""
    medians = np.sort([one.quantile(0.5) for one in group])
    usual = float(medians[(len(medians) - 1) // 2])
    spread = float(np.median([one.quantile(0.75) - one.quantile(0.25) for one in group]))
    least = max(LEAST_US, OF_SPREAD * spread, OF_OTHERS * usual)
    for one in group:
        calls = len(one.samples)
        excess_us = one.quantile(NEARLY_ALL) - usual
        effect_us = excess_us * calls / job.steps
        if calls < FEWEST_CALLS or excess_us < least or effect_us < LEAST_SHARE * job.work_us:
            continue
        where = "on the device, " if clock == "device_us" else ""
        slow = int((one.samples > usual + least).sum())
        message = (
            f"rank {one.rank} takes {units.duration(one.quantile(0.5))} {where}a call, the ranks' median is "
            f"{units.duration(usual)}: it is slower in {units.out_of(slow, calls)} calls"
        )
        evidence = {"rank": one.rank, "excess_us": round(excess_us, 1), "calls": calls, "clock": clock}
        place: dict[str, Any] = {"module": one.module, "source": one.source, "count": calls}
        yield effect_us, straggler.finding(message, ADVICE, evidence=evidence, effect_us=effect_us, **place)


@rule("hint", rank=20)
def wandering_straggler(job: JobFacts) -> Iterator[Finding]:
    """One module takes longer in one rank at 60 % of its calls or more, in another rank each time, and none else does:
    by 2 % of the work of a step or more.
    """
    costs = [_wandering(job, str(module), rows) for module, rows in job.times.groupby("module", sort=False)]
    costs = sorted(costs, key=lambda one: -one[0])
    # Noise of the machine comes to all modules.
    if not costs or costs[0][1] is None or (len(costs) > 1 and costs[0][0] < STANDS_OUT * costs[1][0]):
        return
    yield costs[0][1]


def _wandering(job: JobFacts, module: str, rows: pd.DataFrame) -> tuple[float, Finding | None]:
    """Returns by how much the slowest rank's calls are longer than the others', of a step, and the finding if any."""
    table = rows.pivot_table(index="module_call", columns="rank", values="self_us").dropna()
    if table.shape[0] < FEWEST_CALLS or table.shape[1] < 3:
        return 0.0, None
    values = np.sort(table.to_numpy(), axis=1)
    usual, middle = float(np.median(values)), np.median(values, axis=1)
    least = max(LEAST_US, OF_OTHERS * usual)
    cost_us = float((values[:, -1] - values[:, -2]).sum()) / job.steps
    is_slow = (values[:, -1] - middle > least) & (values[:, -2] - middle < least)
    of_rank = table.idxmax(axis=1)[is_slow].value_counts()
    if is_slow.mean() < OFTEN or cost_us < LEAST_SHARE * job.work_us or of_rank.iloc[0] > 0.5 * is_slow.sum():
        return cost_us, None
    message = (
        f"one rank takes {units.duration(float(np.median(values[is_slow, -1])))} a call, the median of the ranks is "
        f"{units.duration(usual)}, in {units.out_of(int(is_slow.sum()), len(table))} calls; the rank changes"
    )
    evidence = {"ranks": {int(rank): int(count) for rank, count in of_rank.items()}, "calls": len(table)}
    advice = "What takes it depends on the data of each rank: balance lengths, or pad and bucket them alike."
    place: dict[str, Any] = {"module": module, "effect_us": cost_us, "count": int(is_slow.sum())}
    return cost_us, wandering_straggler.finding(message, advice, evidence=evidence, **place)
