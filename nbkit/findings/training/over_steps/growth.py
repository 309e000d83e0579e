"""Finds what grows with each step: ops of a line, hooks of a module."""

from collections.abc import Iterator

import numpy as np

from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Audit

FEWEST_STEPS, FEWEST_HOOKED = 4, 3
OPS = (
    "Look at what the line runs over: a list that each step makes longer, a hook that each step adds, a wrapper that "
    "is put around the model again."
)
HOOKS = (
    "Register it once, before the loop, or remove it after each step: "
    "handle = module.register_forward_hook(...); handle.remove()."
)


@rule("hint", rank=292)
def growing_step(audit: Audit) -> Iterator[Finding]:
    """A line runs as many ops more at each of four steps or more: the fifth step does what the first did, and more."""
    ops, optimizers = audit.ops, max(1, len(audit.optimizers))
    steps = audit.steps // optimizers
    if steps < FEWEST_STEPS:
        return
    ahead = ops[(ops["level"] == "aten") & ops["phase"].isin(["forward", "other"])]
    step = ahead["step"].to_numpy(np.int64) // optimizers
    ahead, step = ahead[step < steps], step[step < steps]
    counts = ahead.groupby([ahead["source"], step]).size().unstack(fill_value=0)
    table = counts.to_numpy(np.int64)
    if table.shape[1] < steps:
        return
    rises = np.diff(table, axis=1)
    found = (rises[:, :1] > 0) & (rises == rises[:, :1])
    for source, count in zip(counts.index[found.all(axis=1)], table[found.all(axis=1)], strict=True):
        finding = growing_step.finding(
            f"This line runs {', '.join(f'{one:,}' for one in count[:FEWEST_STEPS].tolist())} ops in the first steps, "
            f"and {count[-1]:,} in step {steps - 1}: more with each step",
            OPS,
            evidence={"ops_per_step": count.tolist()},
        )
        yield at_ops(finding, ops, ahead["op_id"][ahead["source"] == source].tolist(), audit.texts)


@rule("warning", rank=295)
def added_hooks(audit: Audit) -> Iterator[Finding]:
    """A module has more hooks at each of three steps or more than at the one before."""
    steps = audit.steps // max(1, len(audit.optimizers))
    for model, module, counts in audit.hooks:
        rises = np.diff(counts)
        if steps >= FEWEST_HOOKED and (rises >= 0).all() and int((rises > 0).sum()) >= steps - 1:
            yield added_hooks.finding(
                f"{module or 'The root'} of {model} has {counts[-1]:,} hooks at step {steps - 1}, and had "
                f"{counts[0]:,} at step 0: each step adds some, and all of them run",
                HOOKS,
                module=module,
                evidence={"hooks": [*counts]},
            )
