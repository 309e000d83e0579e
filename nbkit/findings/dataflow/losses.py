"""Rules about losses: activations applied twice or not, operands that grow, targets that are inputs, a wrong sign."""

from collections import defaultdict
from collections.abc import Iterator
from math import prod

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import ADDS, CLASS_LOSSES, ELEMENT_LOSSES, LOSSES, RESHAPES, SOFTMAX, family
from nbkit.step.step import Tensor

# What takes an activation itself, what was applied before, and what to do: softmax in front of cross_entropy.
TWICE = {
    ("_log_softmax", "_softmax"): (
        "log_softmax gets the result of a softmax, which it applies itself: gradients become small, and training slow",
        "Give the loss the scores that go into the softmax.",
    ),
    ("nll_loss_forward", "_softmax"): (
        "nll_loss gets probabilities where it expects their logarithms",
        "Use log_softmax in front of it, or cross_entropy on the scores.",
    ),
    ("nll_loss2d_forward", "_softmax"): (
        "nll_loss gets probabilities where it expects their logarithms",
        "Use log_softmax in front of it, or cross_entropy on the scores.",
    ),
    ("_log_softmax", "sigmoid"): (
        "cross_entropy gets the result of a sigmoid: scores between 0 and 1, of which no class can become sure",
        "Give the loss the scores that go into the sigmoid.",
    ),
    ("binary_cross_entropy_with_logits", "sigmoid"): (
        "binary_cross_entropy_with_logits gets the result of a sigmoid, which it applies itself",
        "Give it the scores that go into the sigmoid, or use binary_cross_entropy.",
    ),
}
DIVERGENCE = "Give it log_softmax of the scores, or log() of the probabilities: kl_div(input.log(), target)."
LOGARITHMS = {
    "raw scores": "Put log_softmax(-1) in front of it.",
    "probabilities": "Use log_softmax in front of it, in the place of softmax.",
}
STILL_POSITIVE = family("FORMS CLAMPS ADDS")
NOT_NORMALIZED = family("PRODUCTS CONVOLUTIONS SOFTMAX")
# Element by element: they keep what two operands made of each other.
BY_ELEMENT = family("FORMULAS ELEMENT_LOSSES")
PAIRED = family("ARITHMETIC ELEMENT_LOSSES eq")
REDUCTIONS = frozenset({"mean", "sum"})
COLUMNS = RESHAPES - family("squeeze") | {"slice"}
MOST_STEPS = 8


@rule("warning", rank=10)
def double_activation(flow: Flow) -> Iterator[Finding]:
    """A softmax or sigmoid goes into a function that applies it itself."""
    for name in {name for name, _ in TWICE}:
        for op in flow.named(name):
            before = flow.origin(op.inputs[0]) if op.is_ahead and op.inputs else None
            is_twice = before is not None and (name, before.name) in TWICE
            if before is not None and is_twice and (before.name != "sigmoid" or _is_of_classes(flow, op)):
                message, advice = TWICE[name, before.name]
                yield double_activation.finding(message, advice, op.op_id, evidence={"first_op_id": before.op_id})


def _is_of_classes(flow: Flow, op: Op) -> bool:
    """Returns whether an op is a loss, or gives what a loss of classes reads: others may compare bounded scores."""
    return op.name in LOSSES or any(reader.name in CLASS_LOSSES for _, reader in flow.uses(op))


@rule("warning", rank=15)
def missing_logarithm(flow: Flow) -> Iterator[Finding]:
    """`kl_div` gets probabilities, `nll_loss` the scores of a layer, or `ctc_loss` either, where it expects logarithms
    of probabilities.
    """
    for op, before in _divergences(flow):
        message = (
            f"kl_div gets the result of {before.name.strip('_')} {[*before.outputs[0].shape]}, probabilities, as its "
            "first argument, where it expects their logarithms: what it gives is no divergence, and may be negative"
        )
        yield missing_logarithm.finding(message, DIVERGENCE, op.op_id, evidence={"first_op_id": before.op_id})
    for op in (op for op in flow.ops.values() if op.is_ahead and len(op.inputs) > 1):
        name = "ctc_loss" if op.name.endswith("ctc_loss") else "nll_loss" if op.name in CLASS_LOSSES else None
        layer = None if name is None else _before_bias(flow, op.inputs[0])
        # Of probabilities that nll_loss gets another rule tells.
        if layer is not None and layer.name in NOT_NORMALIZED - (SOFTMAX if name == "nll_loss" else set()):
            what = "probabilities" if layer.name in SOFTMAX else "raw scores"
            classes = op.inputs[0].shape[-1 if name == "ctc_loss" else 1]
            message = (
                f"{name} gets {what}, the result of {layer.name.strip('_')}, where it expects logarithms of "
                f"probabilities: nothing makes exp() of the {classes} classes add up to 1"
            )
            yield missing_logarithm.finding(message, LOGARITHMS[what], op.op_id, evidence={"first_op_id": layer.op_id})


def _divergences(flow: Flow) -> Iterator[tuple[Op, Op]]:
    """Yields an op of each kl_div whose first argument is probabilities, with the op that made them.

    It computes target * input, or target - input of logarithms.
    """
    ops = flow.step.ops
    calls = frozenset(ops["op_id"][ops["op"].str.endswith(".kl_div")].tolist())
    parents = dict(zip(ops["op_id"].tolist(), ops["parent_id"].tolist(), strict=True)) if calls else {}
    for op in flow.named("mul", "sub") if calls else ():
        if op.is_ahead and len(op.inputs) == 2 and parents[op.op_id] in calls:
            before = flow.maker(flow.behind(op.inputs[1], STILL_POSITIVE))
            if before is not None and before.name in (*SOFTMAX, "sigmoid"):
                yield op, before


def _before_bias(flow: Flow, tensor: Tensor) -> Op | None:
    """Returns the op that computed what is read, but for its bias."""
    op = flow.origin(tensor)
    while op is not None and op.name in ADDS and any(one.name for one in op.inputs[1:]):
        op = flow.origin(op.inputs[0])
    return op


@rule("warning", rank=20)
def unintended_broadcast(flow: Flow) -> Iterator[Finding]:
    """(N, 1) against (N,) in a loss: both broadcast to (N, N), so that each element meets every one of the other."""
    for op in flow.ops.values():
        if not op.is_ahead or op.name not in PAIRED or len(op.inputs) < 2:
            continue
        column, row = _before_expand(flow, op.inputs[0]), _before_expand(flow, op.inputs[1])
        for one, other in ((column, row), (row, column)):
            # Whoever makes a column on purpose writes unsqueeze() or [:, None] in front of the op.
            is_meant = _is_made_a_column(flow, one) or _is_counted(flow, other)
            if _is_column_of(one.shape, other.shape) and not is_meant and _ends_in_a_scalar(flow, op):
                result = [*other.shape, *other.shape[-1:]]
                message = (
                    f"{op.name} of shapes {[*column.shape]} and {[*row.shape]} broadcasts to {result}: each element "
                    "meets every element of the other operand"
                )
                advice = f"Make the shapes equal before: squeeze(-1) on the one of shape {[*one.shape]}."
                yield unintended_broadcast.finding(
                    message, advice, op.op_id, evidence={"shapes": [column.shape, row.shape]}
                )


def _is_column_of(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(other) >= 1 and other[-1] > 1 and one == (*other, 1)


def _before_expand(flow: Flow, tensor: Tensor) -> Tensor:
    """Returns what was expanded, as losses expand their operands."""
    maker = flow.maker(tensor)
    return maker.inputs[0] if maker is not None and maker.name == "expand" and maker.inputs else tensor


def _is_made_a_column(flow: Flow, tensor: Tensor) -> bool:
    maker = flow.maker(tensor)
    is_kept = maker is not None and maker.arguments.get("keepdim") is True
    return maker is not None and (is_kept or maker.name in COLUMNS)


def _is_counted(flow: Flow, tensor: Tensor) -> bool:
    maker = flow.maker(tensor)
    return maker is not None and maker.name == "arange"


def _ends_in_a_scalar(flow: Flow, op: Op) -> bool:
    """Returns whether only ops element by element stand between an op and the mean or sum of all that it gave."""
    if op.name in ELEMENT_LOSSES:
        return bool(op.outputs) and prod(op.outputs[0].shape) == 1
    for _ in range(MOST_STEPS):
        for reader in flow.readers(op):
            if reader.name in REDUCTIONS and reader.outputs and reader.outputs[0].numel == 1:
                return True
        further = [reader for reader in flow.readers(op) if reader.name in BY_ELEMENT and reader.is_ahead]
        if not further:
            return False
        op = further[0]
    return False


@rule("warning", rank=30)
def unshifted_targets(flow: Flow) -> Iterator[Finding]:
    """A causal model is to predict its own inputs.

    A model that sees the whole sequence, or has a decoder with tokens of its own, may well be meant to repeat it.
    """
    lookups: list[Op] = []  # since the loss before
    for op in flow.named("embedding", *CLASS_LOSSES) if flow.is_causal else ():
        if not op.is_ahead or len(op.inputs) < 2:
            continue
        if op.name == "embedding":
            lookups.append(op)
            continue
        lookup, lookups = _lookup_of(flow, lookups, op.inputs[1]), []
        target = op.inputs[1]
        if lookup is not None and target.numel > 1:
            message = (
                f"the targets of the loss are the {target.numel:,} tokens that the embedding reads, each at its own "
                f"position: the model learns to repeat its input"
            )
            advice = "Shift them for a language model: logits[:, :-1] against ids[:, 1:]."
            yield unshifted_targets.finding(message, advice, op.op_id, evidence={"embedding_op_id": lookup.op_id})


def _lookup_of(flow: Flow, lookups: list[Op], target: Tensor) -> Op | None:
    """Returns the op that looks up the target as its tokens, in a table that is asked for no others."""
    tables = defaultdict(set)
    for op in lookups:
        tables[op.inputs[0].memory].add(op.inputs[1].memory)
    values = flow.values_of(target)
    alike = [op for op in lookups if flow.values_of(op.inputs[1]) == values]
    return next((op for op in alike if len(tables[op.inputs[0].memory]) == 1), None)


# They measure how wrong a result is; all become small by training.
NEGATED = (
    "Take the minus out: nll_loss, cross_entropy and mse_loss are made small as they are. Nothing, if an adversary is "
    "trained by it."
)


@rule("hint", rank=100)
def negated_loss(flow: Flow) -> Iterator[Finding]:
    """A backward pass begins at minus a cross entropy or another error."""
    for root in flow.roots():
        op = flow.origin(root.inputs[0])
        loss = flow.origin(op.inputs[0]) if op is not None and _negates(op) else None
        if op is not None and loss is not None and loss.name in LOSSES:
            name = loss.name.removesuffix("_forward")
            message = f"the loss is {name}, negated: training makes {name} larger"
            yield negated_loss.finding(message, NEGATED, op.op_id, evidence={"loss_op_id": loss.op_id})


def _negates(op: Op) -> bool:
    factor = op.arguments.get("other")
    return bool(op.inputs) and (
        op.name == "neg" or (op.name == "mul" and isinstance(factor, int | float) and factor < 0)
    )
