"""Tail says how a result inside a region becomes the pair's: through products with known matrices, sums and factors.

It is told by the values of some rows, not by the names of ops, and carries another value of that result to the pair.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from nbkit.analysis.align.kinds.case import Case, CaseSide, Floats, floats, norm
from nbkit.analysis.align.region import Array

ROWS, COLUMNS = 32, 64
DEPTH = 3
# What a step may leave of a value beside the limit of the case.
NEAR = 1e-4
Carry = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Tail:
    """Holds a result inside, at some rows, and how other values of it give other rows of the pair."""

    name: str
    value: Floats
    carry: Carry


@dataclass(frozen=True)
class Rows:
    """Holds what one side makes of what both know, at some rows; `other` are the other side's rows of the pair."""

    own: Floats
    other: Floats
    inner: dict[str, Floats]
    known: dict[str, Floats]
    vectors: dict[str, Floats]
    matrices: dict[str, Array]
    near: float

    @property
    def values(self) -> dict[str, Floats]:
        """Returns all rows that the side has but its own of the pair."""
        return {**self.known, **self.inner}


def rows_of(case: Case, side: CaseSide) -> Rows:
    """Returns what one side makes inside, at some rows."""
    count = case.left.size // case.shape[-1]
    chosen = np.unique(np.linspace(0, count - 1, min(count, ROWS)).astype(np.intp))
    lead = case.shape[:-1]

    def rows(pairs: list[tuple[str, Array]]) -> dict[str, Floats]:
        return {
            name: floats(value.reshape(-1, value.shape[-1])[chosen])
            for name, value in pairs
            if value.size and value.shape[:-1] == lead and np.issubdtype(value.dtype, np.floating)
        }

    own, other = (one.reshape(-1, case.shape[-1])[chosen] for one in (side.values, side.beside))
    outer = [one for one in case.known if not one.is_inner]
    return Rows(
        own,
        other,
        rows(side.inner),
        rows([(one.name, one.value) for one in outer if one.kind != "parameter"]),
        {one.name: floats(one.value) for one in outer if one.value.ndim == 1},
        {one.name: one.value for one in outer if one.value.ndim == 2 and one.kind != "op"},
        max(NEAR, 2 * case.eps),
    )


def tails_of(side: Rows) -> Iterator[Tail]:
    """Yields the results inside from which the pair is made by steps that are known, the nearest first."""
    found, seen = [Tail("", side.own, lambda values: values)], {""}
    for _ in range(DEPTH):
        before: list[Tail] = []
        for tail in (tail for after in found for tail in _steps(side, after)):
            if tail.name not in seen:
                seen.add(tail.name)
                before.append(tail)
        yield from before
        found = before


def _steps(side: Rows, after: Tail) -> Iterator[Tail]:
    for name, value in reversed(side.inner.items()):
        if name == after.name or norm(value) == 0:
            continue
        if value.shape == after.value.shape:
            yield from _sum(side, after, name, value)
        yield from _product(side, after, name, value)


def _sum(side: Rows, after: Tail, name: str, value: Floats) -> Iterator[Tail]:
    """Yields a result to which a known value is added, or which is multiplied by one."""
    rest = after.value - value
    for other, beside in side.values.items():
        if other in (name, after.name) or beside.shape != value.shape:
            continue
        if norm(rest - beside) <= side.near * norm(after.value):
            yield Tail(name, value, _after(after.carry, partial(np.add, beside)))
        elif norm(after.value - value * beside) <= side.near * norm(after.value):
            yield Tail(name, value, _after(after.carry, partial(np.multiply, beside)))


def _product(side: Rows, after: Tail, name: str, value: Floats) -> Iterator[Tail]:
    """Yields a result that is multiplied by a known matrix, and then has one vector added."""
    for stored in side.matrices.values():
        for matrix in (stored, stored.T):
            if matrix.shape != (value.shape[1], after.value.shape[1]):
                continue
            if not _is_product(side, value, matrix, after.value):
                continue
            wide = floats(matrix)
            bias = (after.value - value @ wide).mean(0)
            yield Tail(name, value, _after(after.carry, _multiplied(wide, bias)))
            return


def _is_product(side: Rows, value: Floats, matrix: Array, wanted: Floats) -> bool:
    """Returns whether a product gives a value but for one vector in all rows, told by a few columns."""
    few = slice(None, None, max(wanted.shape[1] // COLUMNS, 1))
    rest = wanted[:, few] - value @ floats(matrix[:, few])
    return len(rest) > 1 and norm(rest - rest.mean(0)) <= side.near * norm(wanted[:, few])


def _multiplied(matrix: Floats, bias: Floats) -> Carry:
    return lambda values: values @ matrix + bias


def _after(carry: Carry, step: Carry) -> Carry:
    return lambda values: carry(step(values))
