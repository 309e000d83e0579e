"""Finds a model of several ranks that is trained past the wrapper that brings their gradients together."""

from collections.abc import Iterator

from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Audit

ADVICE = (
    "Call the wrapper, ddp(x), for what is trained; its module, ddp.module(x), is for evaluation and for saving. Other "
    "methods of the module are to be called within its forward()."
)


@rule("warning", rank=302)
def bypassed_wrapper(audit: Audit) -> Iterator[Finding]:
    """The model inside a DistributedDataParallel is called itself and trained: each rank has gradients of its own."""
    for model in sorted(audit.bypassed):
        rows = audit.trained[(audit.trained["model"] == model).to_numpy(bool)]
        ops = audit.ops[(audit.ops["model"] == model) & (audit.ops["phase"] == "forward")]
        if len(ops) and rows["gradient"].isin(["finite", "non_finite"]).any() and audit.has_backward:
            finding = bypassed_wrapper.finding(
                "The module in a DistributedDataParallel is called itself, and the wrapper is not: nothing brings the "
                "gradients of the ranks together, so that their parameters part",
                ADVICE,
            )
            yield at_ops(finding, audit.ops, ops["op_id"].tolist()[:1], audit.texts)
