"""Prints, for each model of the tests, FLOPs beside their closed form, and how many calls have a rule and what it says.

python -m tests.ops.flops.shares
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pandas as pd

import nbkit
from tests.ops.flops.by_hand import Calls
from tests.ops.flops.families import FAMILIES, Flops
from tests.ops.flops.nets import NETS


class Measured(NamedTuple):
    """Holds what opcost says of a training step, and how many of its calls the step that runs says the same of."""

    flops: Flops
    computing: int
    with_rule: int
    as_by_hand: int
    unknown: dict[str, int]


def step_of(name: str) -> tuple[Callable[[], Any], Flops]:
    """Returns a model's forward and backward pass, and the closed form of its FLOPs."""
    if name in FAMILIES:
        model, words = FAMILIES[name].make(), FAMILIES[name].inputs()
        return lambda: model(**words).logits.float().sum().backward(), FAMILIES[name].flops
    net, inputs = NETS[name].make(), NETS[name].inputs()
    return lambda: net(inputs).sum().backward(), NETS[name].flops


def measured(name: str) -> tuple[Measured, Flops]:
    """Returns what opcost says of a model's forward and backward pass, and the closed form of its FLOPs."""
    step, expected = step_of(name)
    trace = nbkit.opcost().run(step)
    with Calls() as calls:
        step()
    by_phase = trace.costs.groupby("phase")["flops"].sum()
    flops = Flops(int(by_phase["forward"]), int(by_phase["backward"]))
    counted = computing(trace.costs)
    known = counted[counted[["flops", "elementwise_flops"]].notna().all(axis=1)]
    said = Counter(known[["op", "flops", "elementwise_flops"]].itertuples(index=False, name=None))
    as_by_hand = (said & calls.counted).total()
    return Measured(flops, len(counted), len(known), as_by_hand, trace.meta["unknown_flops"]), expected


def computing(costs: pd.DataFrame) -> pd.DataFrame:
    """Returns the calls that compute, or may: all but those that a rule says to compute nothing."""
    return costs[(costs["flops"].fillna(1) + costs["elementwise_flops"].fillna(1) > 0).to_numpy(bool)]


def rows() -> Iterator[str]:
    for name in (*FAMILIES, *NETS):
        of, expected = measured(name)
        passes = " ".join(f"{flops:>10,}" for flops in (*of.flops, *expected))
        calls = f"{of.computing:>4} {of.with_rule:>4} {of.as_by_hand:>4} ({of.as_by_hand / of.computing:.1%})"
        yield f"{name:14} {passes}  {calls} {of.unknown or ''}"


if __name__ == "__main__":
    print("model, FLOPs forward and backward, the same by closed form; calls that compute, those of them with a rule,")
    print("and those of which formulas of the test, applied to the step that runs, say the same")
    for row in rows():
        print(row, flush=True)
