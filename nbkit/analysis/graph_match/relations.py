"""Says how the tensors of a pair are related, as in the frame `alignment`, from shapes and dtypes alone."""

from collections import Counter
from math import prod

from nbkit.analysis.graph_match.side import Node, Shape
from nbkit.divergence.arguments import in_words, other_arguments


def relation_of(left: Node, right: Node, *, is_turned: bool = False) -> str:
    """Returns same, cast, permute, reshape or other; `is_turned` for a square matrix that is known to be transposed."""
    shape = shape_relation(left.shape, right.shape)
    if shape == "same" and is_turned:
        return "permute"
    if shape == "same" and left.dtype and right.dtype and left.dtype != right.dtype:
        return "cast"
    return shape


def shape_relation(left: Shape | None, right: Shape | None) -> str:
    """Returns same, permute, reshape or other; same where one is not known."""
    if left is None or right is None or left == right:
        return "same"
    if Counter(left) == Counter(right) and 1 not in left:
        return "permute"
    if None in (*left, *right) or prod(left) != prod(right):  # type: ignore[arg-type]
        return "other"
    return "reshape"


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
