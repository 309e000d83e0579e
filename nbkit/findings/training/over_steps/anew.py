"""Finds an optimizer that is made anew again and again, and with that forgets what it has averaged."""

from collections.abc import Iterator, Sequence

import numpy as np

from nbkit.findings.finding import Finding, rule
from nbkit.findings.training.facts import Audit, Made

FEWEST = 3
ADVICE = (
    "Make the optimizer once, before the loop, and hand it to what trains. Nothing, if each part of the training is to "
    "begin without memory of the one before."
)


@rule("warning", "hint", rank=306)
def new_optimizer(audit: Audit) -> Iterator[Finding]:
    """A line makes an optimizer with averages of gradients anew over the same parameters, three times or more, and
    nothing else writes to these: a hint where each does several steps.
    """
    sets = dict.fromkeys((one.type, one.source, one.updated) for one in audit.made if one.source is not None)
    for key in sets:
        made = [one for one in audit.made if (one.type, one.source, one.updated) == key]
        if len(made) >= FEWEST and all(one.remembers for one in made) and not _is_set(audit):
            yield _finding(made)


def _finding(made: Sequence[Made]) -> Finding:
    steps = max(one.steps for one in made)
    times = "each for one step" if steps == 1 else f"each for {steps} steps" if steps == made[0].steps else "anew"
    return new_optimizer.finding(
        f"{made[0].type} is made {len(made)} times over the same parameters, {times}: each time its state is empty, "
        "and the averages of earlier gradients are forgotten",
        ADVICE,
        severity="warning" if steps == 1 else "hint",
        source=made[0].source,
        source_text=made[0].source_text,
        count=len(made),
        evidence={"steps": [one.steps for one in made]},
    )


def _is_set(audit: Audit) -> bool:
    """Returns whether other ops than an optimizer's write to trained parameters: what begins there begins anew."""
    step, names = audit.step, set(audit.trainable["name"])
    held = step.memory[step.tensors["name"].isin(names).to_numpy(bool)]
    written = step.op_ids[step.is_written & np.isin(step.memory, held)]
    return not (audit.ops["phase"].iloc[written] == "optimizer").all()
