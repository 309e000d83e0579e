"""Prints, for each model of the tests, FLOPs beside their closed form and how many calls have a rule.

python -m tests.flops.shares
"""

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

import nbkit
from tests.flops.families import FAMILIES, Flops
from tests.flops.nets import NETS


class Measured(NamedTuple):
    """Holds what opcost says of a training step."""

    flops: Flops
    computing: int
    with_rule: int
    unknown: dict[str, int]


def measured(name: str) -> tuple[Measured, Flops]:
    """Returns what opcost says of a model's forward and backward pass, and the closed form of its FLOPs."""
    if name in FAMILIES:
        model, words = FAMILIES[name].make(), FAMILIES[name].inputs()
        trace = nbkit.opcost().run(lambda: model(**words).logits.float().sum().backward())
        expected = FAMILIES[name].flops
    else:
        net, inputs = NETS[name].make(), NETS[name].inputs()
        trace = nbkit.opcost().run(lambda: net(inputs).sum().backward())
        expected = NETS[name].flops
    by_phase = trace.costs.groupby("phase")["flops"].sum()
    calls = computing(trace.costs)
    with_rule = int(calls[["flops", "elementwise_flops"]].notna().all(axis=1).sum())
    flops = Flops(int(by_phase["forward"]), int(by_phase["backward"]))
    return Measured(flops, len(calls), with_rule, trace.meta["unknown_flops"]), expected


def computing(costs: pd.DataFrame) -> pd.DataFrame:
    """Returns the calls that compute, or may: all but those that a rule says to compute nothing."""
    return costs[(costs["flops"].fillna(1) + costs["elementwise_flops"].fillna(1) > 0).to_numpy(bool)]


def rows() -> Iterator[str]:
    for name in (*FAMILIES, *NETS):
        of, expected = measured(name)
        share = f"{of.with_rule}/{of.computing} calls with a rule ({of.with_rule / of.computing:.1%})"
        passes = " ".join(f"{flops:>10,}" for flops in (*of.flops, *expected))
        yield f"{name:14} {passes}  {share} {of.unknown or ''}"


if __name__ == "__main__":
    print("model, FLOPs forward and backward, the same by closed form, calls with a rule among those that compute")
    for row in rows():
        print(row, flush=True)
