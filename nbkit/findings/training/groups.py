"""Judges the groups of an optimizer: a weight decay that some norms and biases are kept from, and others are not."""

from collections.abc import Iterator

import pandas as pd

from nbkit.findings.finding import Finding, rule
from nbkit.findings.training.facts import Audit
from nbkit.findings.training.names import about, listed_names

ADVICE = (
    "Choose by shape or by type of module rather than by name: parameters of one dimension, and those of norm layers, "
    "go into the group with weight_decay=0."
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
