"""Judges targets of losses of classes: a token that never counts, ignored targets that a mean counts."""

from collections.abc import Iterator

from nbkit.findings.dataflow.means import mean_of
from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Audit
from nbkit.ops.families import CLASS_LOSSES

TOKEN = (
    "If this is the token that ends a text, let it count: mask by the attention mask or by lengths, not by the id of "
    "the padding, or give the padding a token of its own. Nothing, if the model is not to predict it."
)
MEAN = (
    "Leave the reduction to the loss, which divides by what counts, or divide the sum by "
    "(target != ignore_index).sum()."
)


@rule("hint", rank=262)
def uncounted_token(audit: Audit) -> Iterator[Finding]:
    """The one token that a loss ignores stands inside of texts too, or ends each row: a model never learns to give it,
    as where the token that ends a text is the padding as well.
    """
    by_token: dict[int, list[int]] = {}
    for one in audit.targets:
        if one.token is not None:
            by_token.setdefault(one.token, []).append(one.op_id)
    for token, op_ids in by_token.items():
        inside = sum(one.inside for one in audit.targets if one.token == token)
        ignored = sum(one.ignored for one in audit.targets if one.token == token)
        where = (
            f"{inside:,} of them stand between tokens that count" if inside else "each row of the batch ends with it"
        )
        finding = uncounted_token.finding(
            message=f"No target of token {token} counts in the loss: all {ignored:,} are ignored, and {where}, so that "
            "the model never learns to give it",
            advice=TOKEN,
            evidence={"token": token, "inside": inside},
        )
        yield at_ops(finding, audit.ops, op_ids, audit.texts)


@rule("hint", rank=272)
def ignored_in_mean(audit: Audit) -> Iterator[Finding]:
    """A loss of each element is 0 where the target is ignore_index, and a mean of them counts these."""
    losses = {audit.ops["parent_id"].iloc[op.op_id]: op for op in audit.flow.named(*CLASS_LOSSES)}
    for one in audit.targets:
        loss = losses.get(one.op_id)
        mean = None if one.is_reduced or not one.ignored or loss is None else mean_of(audit.flow, loss)
        if mean is not None:
            finding = ignored_in_mean.finding(
                message=f"{mean.name} counts {one.ignored:,} of {one.total:,} targets that the loss ignores, "
                "whose loss is 0: the more of them, the smaller the loss",
                advice=MEAN,
                evidence={"ignored": one.ignored, "total": one.total},
            )
            yield at_ops(finding, audit.ops, [mean.op_id], audit.texts)
