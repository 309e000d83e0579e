"""Describes what came of one result of a replayed call."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import Tensor


class Result(NamedTuple):
    """Describes one compared result: `actual` beside the captured one, and what differs in words, null for nothing."""

    role: str  # output, or input for one that is written to and not returned
    position: int
    actual: Any
    expected: Tensor | None  # null where its values are not in the record or decide nothing
    difference: str | None
    has_other_bits: bool = False
    note: str | None = None


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value
