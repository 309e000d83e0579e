"""Tests whether the right one takes the same operands in another order, or another value than it should."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from nbkit.analysis.align.kinds.activations import NONE, applied, gates, named_function
from nbkit.analysis.align.kinds.case import FEWEST, PAIRED, ROWS, Case, Floats, at, floats, is_close, norm
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.kinds.weights import equal_ones
from nbkit.analysis.align.region import Array, Kind

NAME = "swapped_operands"


@kind_test(NAME, 100, lambda case: case.is_comparable and case.left.size >= FEWEST)
def swapped_operands(case: Case) -> Kinds:
    """Tests f(b) * a against f(a) * b, b - a, b / a, b @ a, a product with another factor, and another known value."""
    if case.is_weight:
        yield from _exchanged(case)
        return
    yield _gated(case)
    yield _function(case)
    yield from _arithmetic(case)
    yield from _products(case)
    yield from _other(case)


def _gated(case: Case) -> Kind | None:
    left, right = case.sides
    for gate in gates(case):
        if gate.other is None or (name := named_function(case, gate, left)) in (None, NONE):
            continue
        alone = replace(gate, name=gate.other_name, value=gate.other, other_name="", other=None)
        swapped = replace(alone, other_name=gate.name, other=gate.value)
        for made, times in ((swapped, ""), (alone, ", times the former")):
            if named_function(case, made, right) == name:
                assert name is not None
                message = f"The right one applies {name} to {gate.other_name}, the left one to {gate.name}{times}."
                return case.told(NAME, message, applied(made, name))
    return None


def _function(case: Case) -> Kind | None:
    """Tests f(b) against f(a)."""
    left, right = case.sides
    alone = [gate for gate in gates(case) if gate.other is None]
    made = [(gate, name) for gate in alone if (name := named_function(case, gate, left)) and name != NONE]
    for first, name in made:
        for second in alone:
            if second.name != first.name and named_function(case, second, right) == name:
                message = f"The right one applies {name} to {second.name}, the left one to {first.name}."
                return case.told(NAME, message, applied(second, name))
    return None


def _exchanged(case: Case) -> Iterator[Kind]:
    """Tests whether both parameters are there on both sides, as where two have taken each other's place."""
    left, right = (equal_ones(case, side) for side in case.sides)
    if left and right and left[0].name != right[0].name:
        names = left[0].name, right[0].name
        message = f"The left one is the parameter {names[0]}, the right one {names[1]}: the two are exchanged."
        yield Kind(NAME, message, 0.0)


def _arithmetic(case: Case) -> Kinds:
    for (one, first), (other, second) in permutations(list(case.shaped(case.shape))[:PAIRED], 2):
        if first.dtype == np.bool_ or second.dtype == np.bool_:
            continue
        for sign, operation in (("-", np.subtract), ("/", np.divide)):
            if not case.may_be_at(operation(at(first, case.places), at(second, case.places)), case.sides[0]):
                continue
            if case.rest(operation(floats(first), floats(second)), case.left, case.right) <= case.limit:
                texts = (f"{other.name} {sign} {one.name}", f"{one.name} {sign} {other.name}")
                message = f"The right one is {texts[0]}, the left one {texts[1]}."
                yield case.told(NAME, message, operation(floats(second), floats(first)))


def _products(case: Case) -> Iterator[Kind]:
    """Tests matrix products at some rows: the operands exchanged, or the second one another value of its shape."""
    if len(case.shape) < 2:
        return
    own = _own(case)
    made = [one for one in _pairs(case) if _is_product(case, *one[2:], case.left)]
    for first, second, left, right in made:
        if _is_product(case, right, left, case.right):
            message = f"The right one multiplies {second} by {first}, the left one {first} by {second}."
            yield Kind(NAME, message, _error(case, right, left, case.right))
        if left.shape == right.swapaxes(-1, -2).shape:
            turned = right.swapaxes(-1, -2), left.swapaxes(-1, -2)
            if _is_product(case, *turned, case.right):
                message = f"The right one takes {first} and {second} in the place of each other."
                yield Kind(NAME, message, _error(case, *turned, case.right))
        for name, other in _in_place(case, own, left, right, case.right):
            if name not in (first, second):
                message = f"The right one takes {name} where the left one takes {second}."
                yield Kind(NAME, message, _error(case, left, other, case.right))


@kind_test("untied_weight", 171, lambda case: case.is_comparable and not case.is_weight and len(case.shape) > 1)
def own_weight(case: Case) -> Kinds:
    """Tests whether one side multiplies by a parameter that it alone has, the other by one that both have."""
    own = _own(case)
    for side in case.sides[::-1] if own else ():
        for first, second, left, right in _pairs(case):
            if not _is_product(case, left, right, side.values) or not _is_own(own, right):
                continue
            for name, shared in _in_place(case, own, left, right, side.beside):
                message = f"The {side.name} one multiplies {first} by a parameter of its own, {second}"
                message = f"{message}, the {side.other} one by {name}, which both have."
                errors = _error(case, left, right, side.values), _error(case, left, shared, side.beside)
                yield Kind("untied_weight", message, max(errors))


def _in_place(case: Case, own: list[Array], left: Array, right: Array, wanted: Floats) -> Iterator[tuple[str, Array]]:
    """Yields what both sides have, as it is or transposed, that gives a product in the place of its second factor."""
    for name, value in _factors(case):
        for turned in (value, value.swapaxes(-1, -2)):
            is_other = turned.shape == right.shape and _is_product(case, left, turned, wanted)
            if is_other and not _is_own(own, value):
                yield name, turned


def _own(case: Case) -> list[Array]:
    """Returns the parameters that one side alone has: read by it, and nowhere near on the other."""
    inside = (*case.region.left_ops, *case.region.right_ops)
    values = [piece.value for piece in inside if piece.result.kind == "parameter" and piece.value is not None]
    values += [one.value for one in case.known if one.kind == "parameter" and one.is_left != one.is_right]
    return [one for one in values if not any(is_close(one, other) for other in case.region.agreed.values())]


def _is_own(own: list[Array], value: Array) -> bool:
    """Returns whether a matrix is one of these parameters, as it is or transposed."""
    return any(is_close(value, one) or is_close(value.swapaxes(-1, -2), one) for one in own if one.ndim >= 2)


def _factors(case: Case) -> list[tuple[str, Array]]:
    found = [*((one.name, one.value) for one in case.known), *case.inner]
    return [(name, value) for name, value in found if value.ndim >= 2 and np.issubdtype(value.dtype, np.floating)]


def _pairs(case: Case) -> Iterator[tuple[str, str, Array, Array]]:
    """Yields operands of a product that has the pair's shape, each as it is or with its last axes swapped."""
    factors, (*_, rows, columns) = _factors(case), case.shape
    for first, left in factors:
        if left.shape[-2] != rows:
            continue
        for second, right in factors:
            for turned in (right, right.swapaxes(-1, -2)):
                if turned.shape[-1] == columns and turned.shape[-2] == left.shape[-1]:
                    yield first, second, left, turned


def _is_product(case: Case, left: Array, right: Array, wanted: Floats) -> bool:
    if left.shape[-1] != right.shape[-2]:
        return False
    return (
        _error(case, left, right, wanted, rows=2) <= 2 * case.limit and _error(case, left, right, wanted) <= case.limit
    )


def _error(case: Case, left: Array, right: Array, wanted: Floats, rows: int = ROWS) -> float:
    """Returns what a product leaves of the difference, at the first rows."""
    kept = slice(0, rows)
    try:
        product = floats(np.asarray(left[..., kept, :], dtype=np.float32) @ np.asarray(right, dtype=np.float32))
    except ValueError:
        return np.inf
    expected = wanted[..., kept, :]
    if product.shape != expected.shape:
        return np.inf
    return norm(product - expected) / max(norm(case.right[..., kept, :] - case.left[..., kept, :]), 1e-300)


def _other(case: Case) -> Kinds:
    """Tests whether the right one equals a further value that both sides have."""
    for one, view in case.shaped(case.shape):
        if one.is_left or one.is_right:
            continue
        yield case.told(NAME, f"The right one is what {one.name} should be: the two are exchanged.", view)
