"""Says how the two things of a row correspond, in the words of the frames alignment and correspondence."""

from collections import Counter
from math import prod

Shape = tuple[int | None, ...]


def action_of(left: object, right: object) -> str:
    """Returns match, or which side alone has something: null stands for nothing."""
    return "right_only" if left is None else "left_only" if right is None else "match"


def mark_of(action: str, *, agrees: bool) -> str:
    """Returns - for what the left side alone has, + for the right one; = for a pair that agrees, ~ for another."""
    return {"left_only": "-", "right_only": "+"}.get(action) or ("=" if agrees else "~")


def shape_relation(left: Shape | None, right: Shape | None) -> str:
    """Returns same, permute, reshape or other; same where one is not known."""
    if left is None or right is None or left == right:
        return "same"
    if Counter(left) == Counter(right) and 1 not in left:
        return "permute"
    if None in (*left, *right) or prod(left) != prod(right):  # type: ignore[arg-type]
        return "other"
    return "reshape"


def tensor_relation(left: Shape | None, right: Shape | None, dtypes: tuple[str | None, str | None]) -> str:
    """Returns the same, and cast for tensors of one shape with two dtypes that are known."""
    shape = shape_relation(left, right)
    return "cast" if shape == "same" and all(dtypes) and dtypes[0] != dtypes[1] else shape
