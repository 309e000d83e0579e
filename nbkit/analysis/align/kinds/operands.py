"""Tests whether the right one takes the same operands in another order, or another value than it should."""

from collections.abc import Iterator

import numpy as np

from nbkit.analysis.align.kinds.activations import NONE, applied, gates, named_function
from nbkit.analysis.align.kinds.case import FEWEST, PAIRED, Case, Floats, at, floats, is_close, norm
from nbkit.analysis.align.kinds.weights import is_equal
from nbkit.analysis.align.region import Array, Kind

ROWS = 64
NAME = "swapped_operands"


def swapped_operands(case: Case) -> Kind | None:
    """Tests f(b) * a against f(a) * b, b - a, b / a, b @ a, a product with another factor, and another known value."""
    if not case.is_same_shape or not case.is_finite or not case.is_clear or case.left.size < FEWEST:
        return None
    if case.is_weight:
        return _exchanged(case)
    return _gated(case) or _function(case) or _arithmetic(case) or _products(case) or _other(case)


def _gated(case: Case) -> Kind | None:
    for gate in gates(case):
        if gate.other is None or (name := named_function(case, gate, "left")) in (None, NONE):
            continue
        swapped = type(gate)(gate.other_name, gate.other, gate.name, gate.value)
        if named_function(case, swapped, "right") == name:
            assert name is not None
            message = f"The right one applies {name} to {gate.other_name}, the left one to {gate.name}."
            return case.told(NAME, message, applied(swapped, name))
        alone = type(gate)(gate.other_name, gate.other)
        if named_function(case, alone, "right") == name:
            assert name is not None
            message = (
                f"The right one applies {name} to {gate.other_name}, the left one to {gate.name}, times the former."
            )
            return case.told(NAME, message, applied(alone, name))
    return None


def _function(case: Case) -> Kind | None:
    """Tests f(b) against f(a)."""
    made = [(gate, name) for gate in gates(case) if gate.other is None and (name := named_function(case, gate, "left"))]
    for first, name in made:
        for second in gates(case):
            if name == NONE or second.other is not None or second.name == first.name:
                continue
            if named_function(case, second, "right") == name:
                message = f"The right one applies {name} to {second.name}, the left one to {first.name}."
                return case.told(NAME, message, applied(second, name))
    return None


def _exchanged(case: Case) -> Kind | None:
    """Tests whether both parameters are there on both sides, as where two have taken each other's place."""
    found = [[one for one in case.known if is_equal(case, one, side)] for side in ("left", "right")]
    names = [one.name for one in found[0][:1] + found[1][:1]]
    if len(names) < 2 or names[0] == names[1]:
        return None
    message = f"The left one is the parameter {names[0]}, the right one {names[1]}: the two are exchanged."
    return Kind(NAME, message, 0.0)


def _arithmetic(case: Case) -> Kind | None:
    found = list(case.shaped(case.shape))[:PAIRED]
    for one, first in found:
        for other, second in found:
            if one is other or first.dtype == np.bool_ or second.dtype == np.bool_:
                continue
            for sign, operation in (("-", np.subtract), ("/", np.divide)):
                if not _is_made(case, operation(at(first, case.places), at(second, case.places))):
                    continue
                if case.rest(operation(floats(first), floats(second)), case.left, case.right) <= case.limit:
                    right = operation(floats(second), floats(first))
                    message = (
                        f"The right one is {other.name} {sign} {one.name}, the left one {one.name} {sign} {other.name}."
                    )
                    if (kind := case.told(NAME, message, right)) is not None:
                        return kind
    return None


def _is_made(case: Case, values: Floats) -> bool:
    """Returns whether values for the few places are the left one's there."""
    left, right = (one.reshape(-1)[case.places] for one in (case.left, case.right))
    return norm(left - values) <= 2 * case.limit * norm(right - left)


def _products(case: Case) -> Kind | None:
    """Tests matrix products at some rows: the operands exchanged, or the second one another value of its shape."""
    if len(case.shape) < 2:
        return None
    own = _own(case)
    made = [one for one in _pairs(case) if _is_product(case, *one[2:], case.left)]
    for first, second, left, right in made:
        if _is_product(case, right, left, case.right):
            message = f"The right one multiplies {second} by {first}, the left one {first} by {second}."
            return Kind(NAME, message, _error(case, right, left, case.right))
        if left.shape == right.swapaxes(-1, -2).shape:
            turned = right.swapaxes(-1, -2), left.swapaxes(-1, -2)
            if _is_product(case, *turned, case.right):
                message = f"The right one takes {first} and {second} in the place of each other."
                return Kind(NAME, message, _error(case, *turned, case.right))
        for name, value in _factors(case):
            for other in (value, value.swapaxes(-1, -2)):
                if other.shape != right.shape or name in (first, second):
                    continue
                if _is_product(case, left, other, case.right) and not _is_own(own, value):
                    message = f"The right one takes {name} where the left one takes {second}."
                    return Kind(NAME, message, _error(case, left, other, case.right))
    return None


def own_weight(case: Case) -> Kind | None:
    """Tests whether one side multiplies by a parameter that it alone has, the other by one that both have."""
    if case.is_weight or not case.is_same_shape or not case.is_finite or not case.is_clear or len(case.shape) < 2:
        return None
    own = _own(case)
    sides = (("right", case.right, "left", case.left), ("left", case.left, "right", case.right))
    for side, values, other, beside in sides if own else ():
        for first, second, left, right in _pairs(case):
            if not _is_product(case, left, right, values) or not _is_own(own, right):
                continue
            for name, shared in _factors(case):
                for turned in (shared, shared.swapaxes(-1, -2)):
                    if turned.shape != right.shape or not _is_product(case, left, turned, beside):
                        continue
                    if _is_own(own, shared):
                        continue
                    message = f"The {side} one multiplies {first} by a parameter of its own, {second}"
                    return Kind(
                        "untied_weight",
                        f"{message}, the {other} one by {name}, which both have.",
                        max(_error(case, left, right, values), _error(case, left, turned, beside)),
                    )
    return None


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
    inner = (*case.inner(case.region.left_ops), *case.inner(case.region.right_ops))
    found = [*((one.name, one.value) for one in case.known), *inner]
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


def _other(case: Case) -> Kind | None:
    """Tests whether the right one equals a further value that both sides have."""
    for one, view in case.shaped(case.shape):
        if one.is_left or one.is_right:
            continue
        message = f"The right one is what {one.name} should be: the two are exchanged."
        if (kind := case.told(NAME, message, view)) is not None:
            return kind
    return None
