"""Rules about the terms of a loss: a weight of each sample that is one of their mean, a term that trains nothing."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import pandas as pd

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import ADDS, CONSTANTS, DETACHES, DIVIDES, FORMS, LOSSES, MULTIPLIES, family
from nbkit.step.reachable import reachable
from nbkit.step.step import Tensor

FOCAL = (
    "Weigh each sample before the mean: entropy = cross_entropy(scores, labels, reduction='none'); "
    "loss = ((1 - (-entropy).exp()) ** gamma * entropy).mean()."
)
FACTOR = family("FORMS FORMULAS mean sum")
MOST_OPS = 16
MOST_BEFORE = 256


@rule("warning", rank=165)
def weighted_mean(flow: Flow) -> Iterator[Finding]:
    """A focal loss weighs the mean of a loss by (1 - exp(-mean)) ** gamma: one weight for all samples."""
    for op in flow.named(*MULTIPLIES):
        is_scalar = op.is_ahead and len(op.inputs) == 2 and not any(one.shape for one in op.inputs)
        for weight, other in (op.inputs, op.inputs[::-1]) if is_scalar else ():
            loss, ops = _source(flow, weight)
            own, plain = _source(flow, other)
            power = next((one.arguments.get("exponent") for one in ops if one.name == "pow"), None)
            is_focal = power and any(one.name == "exp" for one in ops)
            if loss is None or own is not loss or not is_focal or any(one.name in ("exp", "pow") for one in plain):
                continue
            message = (
                f"the weight of a focal loss, to the power of {power:g}, is computed of the mean of "
                f"{loss.name.removesuffix('_forward')} over {loss.inputs[1].numel:,} targets, and multiplies this "
                "mean: one number for all, where cross_entropy of each target has a weight of its own, so that hard "
                "samples count no more than easy ones"
            )
            yield weighted_mean.finding(message, FOCAL, op.op_id, evidence={"loss_op_id": loss.op_id})


def _source(flow: Flow, tensor: Tensor) -> tuple[Op | None, list[Op]]:
    """Returns the loss of all targets, one number, that a number is computed of alone, and the ops between."""
    between: list[Op] = []
    for _ in range(MOST_OPS):
        op = flow.maker(tensor)
        if op is not None and op.name in LOSSES and len(op.inputs) > 1 and op.inputs[1].numel > 1:
            return (op if op.outputs[0].shape == () else None), between
        if op is None or op.name not in FACTOR or tensor.shape or len(op.inputs) != 1:
            break
        between.append(op)
        tensor = op.inputs[0]
    return None, between


# A function of torch that compares what a model gives with what it should.
LOSS = re.compile(r"nn\.functional\.(?:\w*loss\w*|kl_div|\w*cross_entropy\w*)$")
SCALED = FORMS | MULTIPLIES | DIVIDES
TRAINS_NOTHING = (
    "Compute it of values that autograd follows: without detach(), outside of torch.no_grad(), of what is to be "
    "trained. Nothing, if the term is only to be shown."
)


@rule("hint", rank=155)
def constant_term(flow: Flow) -> Iterator[Finding]:
    """A term of the loss has no gradient, though values that have one went into its loss function: it trains nothing.

    Not where the term itself is detached: it is meant to be shown, or to give another value.
    """
    for root in flow.roots():
        terms = list(_terms(flow, root.inputs[0]))
        trained = sum(bool(flow.step.requires_grad[one.row]) for one in terms)
        for term in terms if trained else ():
            loss = None if flow.step.requires_grad[term.row] else flow.maker(term)
            name = None if loss is None else _loss_name(flow, loss)
            cut = None if loss is None or name is None else _cut(flow, loss)
            if loss is None or cut is None:
                continue
            is_detached = cut.name in DETACHES
            how = f"behind {cut.name}" if is_detached else f"where {cut.name} ran without autograd (torch.no_grad)"
            message = (
                f"the term {name} of the loss trains nothing: it requires no gradient, as what it is computed of has "
                f"none {how}; {trained} of the {len(terms)} terms that are added have one"
            )
            evidence = {"loss_op_id": loss.op_id, "cut_op_id": cut.op_id}
            place = cut if is_detached else loss
            yield constant_term.finding(message, TRAINS_NOTHING, place.op_id, evidence=evidence)


GRAPH = (
    "Give autograd.grad() create_graph=True, so that what is computed of the gradients can be differentiated. Nothing, "
    "if the term is only to be shown."
)


@rule("hint", rank=157)
def penalty_without_graph(flow: Flow) -> Iterator[Finding]:
    """A term of the loss is computed of gradients that were made without create_graph=True: it trains nothing."""
    for root in flow.roots():
        terms = list(_terms(flow, root.inputs[0]))
        trained = sum(bool(flow.step.requires_grad[one.row]) for one in terms)
        for term in terms if trained else ():
            made = None if flow.step.requires_grad[term.row] else flow.maker(term)
            first = [] if made is None else [made.op_id]
            before = map(flow.ops.__getitem__, islice(reachable(first, lambda one: _ahead_of(flow, one)), MOST_BEFORE))
            backward = next((one for one in before if one.phase == "backward" and one.outputs), None)
            if made is not None and made.is_ahead and backward is not None:
                message = (
                    f"a term of the loss is computed of gradients {[*backward.outputs[0].shape]} that have no graph of "
                    "their own, as autograd.grad() ran without create_graph=True: the term is a number, and trains "
                    f"nothing; {trained} of the {len(terms)} terms that are added have a gradient"
                )
                yield penalty_without_graph.finding(message, GRAPH, backward.op_id, evidence={"term_op_id": made.op_id})


ELSEWHERE = (
    "Compute the term of what is to be trained, without detach() on the way, or take it out of this loss. Nothing, if "
    "its gradients are to be added to those of a later backward pass."
)


@rule("warning", "hint", rank=158)
def untrained_term(flow: Flow) -> Iterator[Finding]:
    """The gradient of a term of the loss reaches nothing that the optimizer changes then, where those of others do.

    Such as where a fake is detached in the generator's turn, too; a hint where the parameters it reaches are changed
    later, as another backward pass may add to their gradients.
    """
    roots = [*flow.roots()]
    updates = [(op.op_id, changed) for op in flow.ops.values() if (changed := _changed(flow, op))] if roots else []
    for root in roots:
        terms = [one for one in _terms(flow, root.inputs[0]) if flow.step.requires_grad[one.row]]
        now = _next_changed(updates, root, roots) if len(terms) > 1 else set()
        ends = [_ends(flow, term, now) for term in terms] if now else []
        trained = sum(one is None for one in ends)
        for term, reached in zip(terms, ends, strict=False):
            made = flow.maker(term)
            if not trained or not reached or made is None:
                continue
            place = _cut(flow, made) or made
            message = (
                f"a term of the loss, made by {made.name}, trains nothing: its gradient ends in {len(reached)} "
                f"parameters, of which the optimizer changes none after this backward pass; {trained} of the "
                f"{len(terms)} terms that are added reach what it changes"
            )
            is_later = any(reached & changed for _, changed in updates)
            yield untrained_term.finding(
                message,
                ELSEWHERE,
                place.op_id,
                severity="hint" if is_later else "warning",
                evidence={"term_op_id": made.op_id, "parameters": len(reached)},
            )


def _changed(flow: Flow, op: Op) -> set[int]:
    """Returns the memory of the parameters that an optimizer reads, or that are written by hand."""
    if op.phase == "optimizer":
        return {one.memory for one in op.inputs if one.name}
    written = op.outputs if op.is_ahead and op.name.endswith("_") else []
    return {one.memory for one in written if one.memory in flow.held}


def _next_changed(updates: Sequence[tuple[int, set[int]]], root: Op, roots: Sequence[Op]) -> set[int]:
    """Returns the memory that is changed after a backward pass, up to the next one that begins after that."""
    first = next((at for at, _ in updates if at > root.op_id), None)
    if first is None:
        return set()
    end = next((other.op_id for other in roots if other.op_id > first), None)
    return set[int]().union(*(changed for at, changed in updates if first <= at and (end is None or at < end)))


def _ends(flow: Flow, term: Tensor, wanted: set[int]) -> set[int] | None:
    """Returns the memory of the parameters that the gradient of a term reaches; null if one is wanted, none if it
    reaches other tensors, too, such as samples.
    """
    needs, ends = flow.step.requires_grad, set[int]()

    def onward(tensor: Tensor) -> list[Tensor]:
        maker = None if tensor.name else flow.maker(tensor)
        return [] if maker is None else [one for one in maker.inputs if needs[one.row]]

    is_known = True
    for tensor in reachable([term], onward):
        if tensor.memory in wanted and tensor.name:
            return None
        ends |= {tensor.memory} if tensor.name else set()
        is_known &= bool(tensor.name or onward(tensor))
    return ends if is_known else set()


def _terms(flow: Flow, tensor: Tensor) -> Iterator[Tensor]:
    """Yields what a loss is the sum of: each number behind its factor."""
    pending = [tensor]
    for _ in range(MOST_OPS):
        if not pending:
            return
        tensor = pending.pop()
        op = flow.maker(tensor)
        if op is not None and not tensor.shape and op.name in ADDS | SCALED - DETACHES and len(op.inputs) <= 2:
            numbers = op.inputs if op.name in ADDS else op.inputs[:1] if len(op.inputs) == 1 else []
            if numbers and not any(one.shape for one in numbers):
                pending += numbers
                continue
        yield tensor


def _loss_name(flow: Flow, op: Op) -> str | None:
    """Returns the function of torch that computes a loss by an op; null if it is none."""
    parent = flow.step.ops["parent_id"].iloc[op.op_id]
    name = None if pd.isna(parent) else str(flow.step.ops["op"].iloc[int(parent)])
    return name.rpartition(".")[2] if name is not None and LOSS.search(name) else None


def _cut(flow: Flow, op: Op) -> Op | None:
    """Returns the nearest op before that got values with a gradient, and gave numbers without."""
    needs = flow.step.requires_grad
    for op_id in islice(reachable([op.op_id], lambda one: _made_by(flow, one)), MOST_BEFORE):
        before = flow.ops[op_id]
        is_cut = before.is_ahead and before.name not in CONSTANTS and not any(needs[one.row] for one in before.outputs)
        if is_cut and any(needs[one.row] for one in before.inputs):
            return before
    return None


def _ahead_of(flow: Flow, op_id: int) -> list[int]:
    """Returns the same, but not past a backward pass or an optimizer, whose gradients are of another step."""
    return _made_by(flow, op_id) if flow.ops[op_id].is_ahead else []


def _made_by(flow: Flow, op_id: int) -> list[int]:
    makers = (flow.maker(one) for one in flow.ops[op_id].inputs if "float" in one.dtype)
    return [maker.op_id for maker in makers if maker is not None]
