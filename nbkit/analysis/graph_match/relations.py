"""Says how the tensors of a pair are related, as in the frame `alignment`, from shapes and dtypes alone."""

from nbkit.analysis.graph_match.side import Node, Shape
from nbkit.divergence.arguments import in_words, other_arguments
from nbkit.divergence.columns import shape_relation, tensor_relation


def relation_of(left: Node, right: Node, *, is_turned: bool = False) -> str:
    """Returns same, cast, permute, reshape or other; `is_turned` for a square matrix that is known to be transposed."""
    if is_turned and shape_relation(left.shape, right.shape) == "same":
        return "permute"
    return tensor_relation(left.shape, right.shape, (left.dtype, right.dtype))


def difference(left: Node, right: Node, *, is_turned: bool = False) -> str | None:
    """Returns what differs between tensors and arguments, in words; null if nothing that is known."""
    sentences = []
    if is_turned and left.shape == right.shape:
        sentences.append("square, and transposed as the other weights of these graphs")
    elif shape_relation(left.shape, right.shape) == "permute":
        sentences.append("transposed" if len(left.shape or ()) == 2 else "permuted")
    if left.shape is not None and right.shape is not None and left.shape != right.shape:
        sentences.append(f"{_text(left.shape)} on the left, {_text(right.shape)} on the right")
    if left.dtype and right.dtype and left.dtype != right.dtype:
        sentences.append(f"{left.dtype} on the left, {right.dtype} on the right")
    if left.op == right.op and (others := other_arguments(left.arguments, right.arguments)):
        sentences.append(in_words(others))
    return "; ".join(sentences) or None


def _text(shape: Shape) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"
