"""Finds gradients that are used twice, and gradients that another optimizer's loss left."""

from collections.abc import Iterator

from nbkit.findings.finding import Finding, at_ops, counting, rule
from nbkit.findings.training.facts import Audit
from nbkit.findings.training.names import about, listed_names

FEWEST = 2
ONCE = (
    "Step once for each backward pass, and each optimizer after its own: scaler.step(optimizer) steps the optimizer "
    "itself. Nothing, if gradients are to be used twice."
)
CLEAR = (
    "Clear the gradients of both before each backward pass, or freeze the other network for it: "
    "critic.requires_grad_(False). Nothing, if the sum of both losses is meant."
)


@rule("warning", rank=188)
def repeated_step(audit: Audit) -> Iterator[Finding]:
    """An optimizer steps again on the gradients that its last step has read, just as they were, twice or more."""
    for source in dict.fromkeys(one.source for one in audit.again):
        alike = [one for one in audit.again if one.source == source]
        if len(alike) >= FEWEST:
            yield repeated_step.finding(
                f"{alike[0].type} steps again on gradients that its step before has read, and to which no backward "
                f"pass has added since, {len(alike)} times: each is used twice",
                ONCE,
                step=alike[0].step,
                source=source,
                source_text=alike[0].source_text,
                count=len(alike),
            )


@rule("hint", rank=42)
def foreign_gradient(audit: Audit) -> Iterator[Finding]:
    """A backward pass adds to gradients that were there when another optimizer stepped, and a step uses the sum: as
    where a critic keeps those of the generator's loss.
    """
    for model in dict.fromkeys(one.model for one in audit.foreign):
        alike = [one for one in audit.foreign if one.model == model]
        names = list(dict.fromkeys(one.name for one in alike))
        finding = foreign_gradient.finding(
            f"The backward pass adds the gradients of {listed_names(audit, model, names)} to those that a loss for "
            "another optimizer left there, and the step uses the sum of both",
            CLEAR,
            **about(names),
        )
        placed = at_ops(finding, audit.ops, [min(one.op_id for one in alike)], audit.texts)
        yield counting(placed, len(names))
