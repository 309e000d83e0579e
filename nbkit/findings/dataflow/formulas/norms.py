"""Rules about what is normalized over another dimension than it is summed over: similarities, mixtures, penalties."""

from collections import defaultdict
from collections.abc import Iterator

from nbkit.findings.dataflow.attention import PRODUCTS
from nbkit.findings.dataflow.dims import dim_after
from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import ADDS, DIVIDES, FACTORS, FORMS, LOG_SOFTMAX, SUBTRACTS, VECTOR_NORMS, family

LENGTH = family("FORMS CLAMPS ADDS")
REDUCTIONS = frozenset({"mean", "sum"})
MOST_STEPS, IMAGE = 16, 4  # dimensions of a batch of images
GONE = -1
FEATURES = "Give the dimension of the features: F.normalize(x, dim=-1); without dim it is 1."
COMPONENTS = "Give the softmax the dimension that logsumexp sums over."
WHOLE = "Take the norm of each sample's whole gradient: gradients.flatten(1).norm(2, dim=1)."


@rule("warning", rank=63)
def normalized_dim(flow: Flow) -> Iterator[Finding]:
    """Vectors are brought to length 1 over one dimension, and a product compares them over another one with vectors of
    length 1 over that.

    Where neither side has length 1 over what is summed, as in a covariance of features, it may be meant.
    """
    factors: dict[int, list[tuple[Op, int, bool, int]]] = defaultdict(list)
    for op in flow.named(*DIVIDES):
        dims = _unit_dims(flow, op)
        for product, is_summed, size in _products(flow, op, dims[0]) if len(dims) == 1 else ():
            factors[product].append((op, dims[0], is_summed, size))
    for product, sides in factors.items():
        for op, dim, is_summed, size in sides if any(is_summed for *_, is_summed, _ in sides) else ():
            if is_summed:
                continue
            shape = [*op.outputs[0].shape]
            message = (
                f"vectors {shape} are brought to length 1 over dimension {dim}, of size {shape[dim]}, and "
                f"{flow.ops[product].name} compares them with others by a sum over another dimension, of size {size}, "
                "over which the others have length 1: what it gives are no cosines"
            )
            yield normalized_dim.finding(message, FEATURES, op.op_id, evidence={"product_op_id": product})


def _unit_dims(flow: Flow, op: Op) -> list[int]:
    """Returns over which dimensions an op divides a tensor by its own norm; none where it does not."""
    if not op.is_ahead or len(op.inputs) != 2 or not op.inputs[0].shape:
        return []
    norm = flow.maker(flow.behind(op.inputs[1], LENGTH))
    if norm is None or norm.name not in VECTOR_NORMS or norm.inputs[0].tensor_id != op.inputs[0].tensor_id:
        return []
    dims, order = norm.arguments.get("dim"), norm.arguments.get("ord", norm.arguments.get("p", 2))
    return [int(dim) % len(op.inputs[0].shape) for dim in dims] if isinstance(dims, list) and order == 2 else []


def _products(flow: Flow, op: Op, dim: int) -> Iterator[tuple[int, bool, int]]:
    """Yields the products that read what an op gave, with whether each sums over `dim` of it, and the size it does."""
    pending = [(op, dim)]
    for made, at in pending:
        for reader in flow.readers(made) if len(pending) < MOST_STEPS else ():
            place = reader.place_of(made.outputs[0].tensor_id)
            if not reader.is_ahead or place < 0:
                continue
            if reader.name in PRODUCTS and place in FACTORS[reader.name]:
                shape = reader.inputs[place].shape
                summed = len(shape) - (1 if place == FACTORS[reader.name][0] else 2)
                yield reader.op_id, at == summed, shape[summed]
            elif (after := _after(reader, place, at)) is not None:
                pending.append((reader, after))


def _after(op: Op, place: int, dim: int) -> int | None:
    """Returns where a dimension is after an op of another form, a mean or a sum; GONE where it was summed over."""
    if op.name in FORMS:
        return GONE if dim == GONE else dim_after(op, place, dim)
    if op.name not in REDUCTIONS:
        return None
    dims, count = op.arguments.get("dim"), len(op.inputs[place].shape)
    if not isinstance(dims, list) or not dims:
        return None
    over = {int(each) % count for each in dims}
    is_kept = len(op.outputs[0].shape) == count
    return GONE if dim in over or dim == GONE else dim - (0 if is_kept else sum(each < dim for each in over))


@rule("hint", rank=65)
def mixture_dim(flow: Flow) -> Iterator[Finding]:
    """Logarithms of weights that add up to 1 over one dimension go into a logsumexp over another one, of another size.

    Weights of a square may be those from each state to each (a hidden Markov model).
    """
    for op in flow.named(*LOG_SOFTMAX):
        for reader, shape, at in _sums(flow, op) if op.is_ahead and op.outputs and op.outputs[0].shape else ():
            over = [int(dim) % len(shape) for dim in reader.arguments.get("dim", [])]
            if len(over) == 1 and over != [at] and len({shape[at], shape[over[0]], 1}) == 3:
                message = (
                    f"log_softmax makes weights {[*op.outputs[0].shape]} add up to 1 over a dimension of size "
                    f"{shape[at]}, and logsumexp sums over another one, of size {shape[over[0]]}: the weights of such "
                    "a sum add up to anything"
                )
                yield mixture_dim.finding(message, COMPONENTS, op.op_id, evidence={"sum_op_id": reader.op_id})


def _sums(flow: Flow, softmax: Op) -> Iterator[tuple[Op, tuple[int, ...], int]]:
    """Yields each logsumexp of what a softmax gave, with the shape that it reads and the softmax's dimension in it."""
    pending = [(softmax, int(softmax.arguments.get("dim", -1)) % len(softmax.outputs[0].shape))]
    for made, at in pending:
        for reader in flow.readers(made) if len(pending) < MOST_STEPS else ():
            place, given = reader.place_of(made.outputs[0].tensor_id), made.outputs[0].shape
            after = reader.outputs[0].shape if reader.is_ahead and place >= 0 and reader.outputs else ()
            if reader.name == "logsumexp" and after:
                yield reader, given, at
            elif reader.name in ADDS | SUBTRACTS and len(after) >= len(given):
                moved = at + len(after) - len(given)
                pending += [(reader, moved)] if after[moved] == given[at] else []
            elif reader.name in FORMS and (moved_to := dim_after(reader, place, at)) is not None:
                pending.append((reader, moved_to))


@rule("warning", rank=68)
def penalty_of_parts(flow: Flow) -> Iterator[Finding]:
    """A gradient penalty takes the norm of a part of each sample's gradient: of each pixel over its channels."""
    for op in flow.named(*VECTOR_NORMS):
        shape, dims = op.inputs[0].shape, op.arguments.get("dim")
        gradient = flow.maker(op.inputs[0])
        if not isinstance(dims, list) or gradient is None or gradient.phase != "backward" or len(shape) < IMAGE:
            continue
        over = {int(dim) % len(shape) for dim in dims}
        parts = op.outputs[0].numel // max(shape[0], 1)
        is_held = any(one.name in SUBTRACTS and one.arguments.get("other") == 1 for one in flow.readers(op))
        if dims and 0 not in over and parts > 1 and is_held and flow.step.requires_grad[op.inputs[0].row]:
            message = (
                f"the gradient {[*shape]} of {shape[0]} samples gets {parts:,} norms a sample, over dimension "
                f"{', '.join(map(str, sorted(over)))}, and each is held at 1: the penalty is on parts, where the norm "
                "of a sample's whole gradient is meant"
            )
            yield penalty_of_parts.finding(message, WHOLE, op.op_id, evidence={"norms_per_sample": parts})
