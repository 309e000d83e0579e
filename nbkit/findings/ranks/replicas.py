"""Finds replicas of a model that are no longer alike: other gradients at the optimizer's step, or other values."""

from collections.abc import Iterator

import pandas as pd

from nbkit import units
from nbkit.findings.finding import Finding, rule
from nbkit.findings.ranks.facts import JobFacts

ROUNDING = 1e-5
WRAPPER = "DistributedDataParallel"
GRADIENTS = (
    "Call the wrapper, not its module, and leave no_sync() at the last backward pass before a step; what is meant so, "
    "such as local SGD, needs no change."
)
VALUES = (
    "Load and change parameters before the model is wrapped, or in all ranks alike: "
    "DistributedDataParallel sends those of rank 0 once, when it is made."
)


@rule("warning", rank=50)
def replicas_differ(job: JobFacts) -> Iterator[Finding]:
    """Ranks of a DistributedDataParallel step with gradients of other norms, or their parameters have other values."""
    rows = job.parameters
    is_root = job.modules["module"].eq("") & job.modules["type"].eq(WRAPPER)
    wrapped = job.modules[is_root].drop_duplicates(["rank", "model"])[["rank", "model"]]
    rows = rows.merge(wrapped, on=["rank", "model"])
    rows = rows[(rows["kind"] == "parameter") & (rows["optimizer_steps"].fillna(0) > 0)]
    gradients = _unlike(rows, "gradient_norm")
    yield from _told(gradients, "gradient", "nothing brought the gradients of the ranks together", GRADIENTS)
    # A parameter whose gradient is another one changes otherwise, too.
    values = _unlike(rows[~rows["name"].isin(gradients.index)], "update_fraction")
    yield from _told(values, "parameter", "the gradients are the same, what they change is not", VALUES)


def _unlike(rows: pd.DataFrame, column: str) -> pd.Series:
    """Returns, by parameter, the ranks that have another number than most; all ranks where no number is that of most.

    Norms of equal bits differ by rounding where the machines do.
    """
    table = rows.pivot_table(index="name", columns="rank", values=column, aggfunc="first", sort=False)
    table = table[table.notna().sum(axis=1) > 1]
    usual = table.median(axis=1)
    is_other = table.sub(usual, axis=0).abs().gt(ROUNDING * usual.abs(), axis=0)
    is_split = is_other.sum(axis=1).mul(2).ge(table.notna().sum(axis=1))
    is_other = is_other.where(~is_split, table.notna())
    return is_other[is_other.any(axis=1)].apply(lambda row: [int(rank) for rank in row.index[row]], axis=1)


def _told(ranks: pd.Series, noun: str, why: str, advice: str) -> Iterator[Finding]:
    if not len(ranks):
        return
    name, others = str(ranks.index[0]), ranks.iloc[0]
    differs = "differs" if len(ranks) == 1 else "differ"
    message = (
        f"{units.counted(len(ranks), noun)} {differs} between the ranks, such as that of {name} in "
        f"{'rank' if len(others) == 1 else 'ranks'} {', '.join(map(str, others))}: {why}"
    )
    evidence = {"ranks": sorted({rank for of_one in ranks for rank in of_one}), "parameters": [*ranks.index[:20]]}
    yield replicas_differ.finding(message, advice, parameter=name, evidence=evidence, count=len(ranks))
