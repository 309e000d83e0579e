"""Judges targets of losses, and padding: a token that never counts, a blank among labels, padding that counts."""

from collections.abc import Iterator
from itertools import islice

from nbkit.findings.dataflow.flow import Op
from nbkit.findings.dataflow.means import mean_of
from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Audit, Padded
from nbkit.ops.families import CLASS_LOSSES, GATHERS, MASKED_FILLS, MULTIPLIES
from nbkit.step.reachable import reachable

TOKEN = (
    "If this is the token that ends a text, let it count: mask by the attention mask or by lengths, not by the id of "
    "the padding, or give the padding a token of its own. Nothing, if the model is not to predict it."
)
MEAN = (
    "Leave the reduction to the loss, which divides by what counts, or divide the sum by "
    "(target != ignore_index).sum()."
)

BLANK = "Number the labels from 1 where the blank is 0, or give blank= a number of its own, such as the last class."
LAST = (
    "Read the state at the last token of each text: states[torch.arange(n), lengths - 1], or pack_padded_sequence() "
    "and h_n."
)
COUNTED = "Leave padding out: (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), mask = ids != padding."
ZERO = "Set it to 0 after the initialization: with torch.no_grad(): table.weight[table.padding_idx].zero_()."
MASKED = (MULTIPLIES | MASKED_FILLS | GATHERS) - {"embedding"}
RECURRENT = ("GRU", "LSTM", "RNN")
MOST_OPS = 4_000


@rule("warning", rank=261)
def blank_label(audit: Audit) -> Iterator[Finding]:
    """`ctc_loss` gets labels that are its blank: these can never be read."""
    for one in audit.blanks:
        finding = blank_label.finding(
            f"{one.are_blank:,} of {one.total:,} labels of ctc_loss are {one.blank}, which is its blank: the model "
            "cannot tell them from nothing at all",
            BLANK,
            evidence={"blank": one.blank, "count": one.are_blank},
        )
        yield at_ops(finding, audit.ops, [one.op_id], audit.texts)


@rule("hint", rank=264)
def counted_padding(audit: Audit) -> Iterator[Finding]:
    """The last state of a recurrence is read at the padding of texts, a mean over positions counts padding, or a sum
    adds a row of the padding that is not 0.
    """
    lookups = {audit.ops["parent_id"].iloc[op.op_id]: op for op in audit.flow.named("embedding")}
    for one in audit.padded:
        if one.op_id in lookups:
            for op_id, message, advice in _counted(audit, one, lookups[one.op_id]):
                yield at_ops(counted_padding.finding(message, advice), audit.ops, [op_id], audit.texts)


def _counted(audit: Audit, padded: Padded, lookup: Op) -> Iterator[tuple[int, str, str]]:
    """Yields the ops that count padding as text, with what is to be said."""
    flow, modules = audit.flow, audit.modules
    recurrent = set(modules["module"][modules["type"].str.startswith(RECURRENT)])
    size = lookup.outputs[0].shape[:2]
    tokens = f"{padded.padding:,} of {padded.total:,} tokens of the batch are padding"
    met = reachable([lookup.op_id], lambda one: [to.op_id for to in flow.readers(flow.ops[one]) if to.is_ahead])
    for op in map(flow.ops.__getitem__, islice(met, MOST_OPS)):
        dims, before = op.arguments.get("dim"), flow.origin(op.inputs[0]) if op.inputs else None
        if before is None or op.inputs[0].shape[:2] != size or size[0] == size[1]:
            continue
        is_last = op.name == "select" and dims == 1 and op.arguments.get("index") in (-1, size[1] - 1)
        if is_last and before.module in recurrent and padded.at_end:
            ends = f"{padded.at_end:,} of {padded.rows:,} texts end with padding"
            yield op.op_id, f"the last position of a recurrence is read, and {ends}: its state has read that, too", LAST
        elif op.name == "mean" and dims == [1] and before.name not in MASKED:
            yield op.op_id, f"the mean over positions counts padding: {tokens}", COUNTED
        elif op.name == "sum" and dims == [1] and before is lookup and not padded.is_zero:
            yield op.op_id, f"the sum adds the row of the padding, which is not 0: {tokens}", ZERO


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
