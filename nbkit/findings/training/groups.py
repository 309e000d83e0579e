"""Judges the groups of an optimizer: weight decay of some norms and biases alone, rates that become one."""

from collections.abc import Iterator

import pandas as pd

from nbkit.findings.finding import Finding, rule
from nbkit.findings.training.facts import Audit
from nbkit.findings.training.names import about, by_model, listed_names

ADVICE = (
    "Choose by shape or by type of module rather than by name: parameters of one dimension, and those of norm layers, "
    "go into the group with weight_decay=0."
)

# So many steps, and so many times the smallest rate is the largest at the first of them.
FEWEST_STEPS, LEAST_RATIO = 4, 2
ONE_RATE = (
    "Look at the line that sets group['lr'], or at the schedule: it is to multiply the rate that each group began with "
    "(group['initial_lr']). Nothing, if the groups are to have one rate from there on."
)


@rule("hint", rank=252)
def decayed_norm(audit: Audit) -> Iterator[Finding]:
    """Norms or biases are decayed, where others of the model are kept from weight decay."""
    rows = audit.trainable
    norms = audit.modules[audit.modules["type"].str.contains("Norm")]
    of_norm = pd.MultiIndex.from_frame(rows[["model", "module"]]).isin(
        pd.MultiIndex.from_frame(norms[["model", "module"]])
    )
    is_bias = rows["name"].str.endswith("bias").to_numpy(bool)
    decay = rows["weight_decay"].to_numpy(float)
    for model in rows["model"].unique():
        mine = (rows["model"] == model).to_numpy(bool) & (of_norm | is_bias)
        free, decayed = rows[mine & (decay == 0)], rows[mine & (decay > 0)]
        if not len(free) or not len(decayed):
            continue
        names, others = decayed["name"].tolist(), free["name"].tolist()
        rate = decayed["weight_decay"].max()
        yield decayed_norm.finding(
            message=f"{listed_names(audit, model, names)} {'is' if len(names) == 1 else 'are'} decayed by {rate:g}, "
            f"though {len(others):,} other norms and biases of {model} are kept from weight decay",
            advice=ADVICE,
            **about(names, weight_decay=rate, free=others),
        )


@rule("hint", rank=254)
def merged_rates(audit: Audit) -> Iterator[Finding]:
    """The groups of the one optimizer have learning rates that differ at the first step, twofold at least, and one
    rate for all at each of the three steps or more that follow.
    """
    rows = audit.trainable
    keys = [*zip(rows["model"], rows["name"], strict=True)]
    histories = [audit.histories[key].rates for key in keys if key in audit.histories]
    lengths = {len(rates) for rates in histories}
    if len(audit.optimizers) != 1 or len(audit.made) > 1 or len(lengths) != 1 or min(lengths) < FEWEST_STEPS:
        return
    steps = [[rate for rate in rates if rate] for rates in zip(*histories, strict=True)]
    if any(len(rates) < len(histories) or len({*rates}) > 1 for rates in steps[1:]) or len(steps[0]) < len(histories):
        return
    least, most = min(steps[0]), max(steps[0])
    if most < LEAST_RATIO * least:
        return
    slow = rows[[rate == least for rate in steps[0]]]
    named = "; ".join(listed_names(audit, model, names) for model, names in by_model(slow))
    yield merged_rates.finding(
        f"The learning rate of each group of {audit.optimizers[0]} is its own at step 0, from {least:g} to {most:g}, "
        f"and all have one from step 1 on: {steps[1][0]:g} there, {steps[1][0] / least:.3g} times as much as {named} "
        f"had",
        ONE_RATE,
        step=1,
        **about(slow["name"].tolist(), rates=[rates[0] for rates in steps[1:]], first=[least, most]),
    )
