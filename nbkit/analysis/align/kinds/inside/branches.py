"""Tests kinds on results inside a region that become the pair's by known steps: activations, norms, factors."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nbkit.analysis.align.kinds.activations import FUNCTIONS, NONE
from nbkit.analysis.align.kinds.case import Case, Floats, norm, number_text
from nbkit.analysis.align.kinds.inside.tails import Rows, Tail, rows_of, tails_of
from nbkit.analysis.align.kinds.linear import reading_of
from nbkit.analysis.align.kinds.norms.epsilon import ANOTHER, AS_GOOD, EPSILONS, Told
from nbkit.analysis.align.kinds.norms.epsilon import NAME as EPSILON
from nbkit.analysis.align.kinds.norms.recorded import Epsilon, recorded_epsilon
from nbkit.analysis.align.region import Kind

Variant = tuple[str, str, Floats]  # kind, message with {here} and {there}, rows of the result inside
ELEMENTS, COLUMNS = 500, 32


def branch_kind(case: Case) -> Kind | None:
    """Tests each change of what one side makes inside, carried on to the pair."""
    if not case.is_comparable or case.is_weight or len(case.shape) < 2:
        return None
    for here, there in (case.sides, case.sides[::-1]):
        side, told = rows_of(case, here), (recorded_epsilon(here), recorded_epsilon(there))
        for tail in tails_of(side):
            variants = _variants(side, tail, case.dimensions, told)
            fits = (case.fits(name, text, tail.carry(rows), side.other, side.own) for name, text, rows in variants)
            if (kind := _best(filter(None, fits))) is not None:
                return replace(kind, message=kind.message.format(here=here.name, there=there.name))
    return None


def _best(fits: Iterator[Kind]) -> Kind | None:
    """Returns the first kind; of epsilons the one that fits best, and no number where another one fits as well."""
    first = next(fits, None)
    if first is None or first.name != EPSILON:
        return first
    found = sorted([first, *(one for one in fits if one.name == EPSILON)], key=lambda one: one.explained)
    if len(found) > 1 and found[1].explained <= AS_GOOD * found[0].explained:
        return replace(found[0], message=ANOTHER)
    return found[0]


def _variants(side: Rows, tail: Tail, dimensions: tuple[int, ...], told: Told) -> Iterator[Variant]:
    yield from _gates(side, tail)
    yield from _norms(side, tail, told)
    yield from _factors(side, tail, dimensions)


def _gates(side: Rows, tail: Tail) -> Iterator[Variant]:
    """Yields f(a) b with another f, or with a and b exchanged."""
    width = tail.value.shape[1]
    values = {name: value for name, value in side.values.items() if value.shape[1] == width and name != tail.name}
    for name, value in side.values.items():
        if value.shape[1] == 2 * width:
            values[f"the first half of {name}"], values[f"the second half of {name}"] = (
                value[:, :width],
                value[:, width:],
            )
    ones = np.ones(tail.value.shape)
    for name, value in values.items():
        for other, beside in (("", ones), *values.items()):
            if other == name:
                continue
            own = _function(side, tail.value, value, beside)
            if own is None or (own == NONE and not other):
                continue
            if other and own != NONE:
                text = f"The {{there}} one applies {own} to {other}, the {{here}} one to {name}."
                yield "swapped_operands", text, FUNCTIONS[own](beside) * value
            for function, made in FUNCTIONS.items():
                if function != own and own != NONE:
                    text = f"The activation of {name} is {own} on the {{here}} and {function} on the {{there}}."
                    yield "activation", text, made(value) * beside


def _function(side: Rows, wanted: Floats, value: Floats, beside: Floats) -> str | None:
    """Returns the activation that gives a result, told by a few elements; null if none does."""
    few = slice(None, None, max(wanted.size // ELEMENTS, 1))
    wanted, value, beside = (one.reshape(-1)[few] for one in (wanted, value, beside))
    errors = ((norm(wanted - function(value) * beside), name) for name, function in FUNCTIONS.items())
    least, name = min(errors, key=lambda one: np.nan_to_num(one[0], nan=np.inf))
    return name if least <= side.near * norm(wanted) else None


def _norms(side: Rows, tail: Tail, told: Told) -> Iterator[Variant]:
    """Yields x in the place of norm(x), and norms with another epsilon: what the ops of each side tell, or any."""
    is_same = told[0] is not None and told[0] == told[1]
    others = EPSILONS if told[1] is None else () if told[1].is_outside or is_same else (told[1].value,)
    for name, value in side.values.items():
        if value.shape != tail.value.shape or name == tail.name:
            continue
        for rows in (value, value - value.mean(-1, keepdims=True)):
            squares = (rows**2).mean(-1, keepdims=True)
            own = _epsilon(side, rows, squares, tail.value, told[0])
            if own is None:
                continue
            weight, bias = _fitted(rows / np.sqrt(squares + own), tail.value)
            text = f"The {{here}} one normalizes {name} before it goes on, the {{there}} one does not."
            yield "norm_place", text, value
            for epsilon in others:
                if epsilon != own:
                    first, second = number_text(own), number_text(epsilon)
                    text = f"The norm has epsilon {first} on the {{here}}, {second} on the {{there}}."
                    yield "epsilon", text, rows / np.sqrt(squares + epsilon) * weight + bias


def _epsilon(side: Rows, rows: Floats, squares: Floats, wanted: Floats, told: Epsilon | None) -> float | None:
    """Returns the epsilon with which rows, normalized and weighted, give others; null if none does. Looks at a few."""
    usual = EPSILONS if told is None else () if told.is_outside else (told.value,)
    few = slice(None, None, max(rows.shape[1] // COLUMNS, 1))
    rows, wanted = rows[:, few], wanted[:, few]
    errors = []
    for epsilon in usual:
        unit = rows / np.sqrt(squares + epsilon)
        weight, bias = _fitted(unit, wanted)
        errors.append((norm(wanted - unit * weight - bias), epsilon))
        if norm(weight) == 0:
            return None
    least, own = min(errors, default=(np.inf, 0.0))
    return own if least <= side.near * norm(wanted) else None


def _fitted(unit: Floats, wanted: Floats) -> tuple[Floats, Floats]:
    """Returns weight and bias of each column that make the one of the other."""
    mean, middle = unit.mean(0), wanted.mean(0)
    centered = unit - mean
    weight = (centered * (wanted - middle)).sum(0) / np.maximum((centered**2).sum(0), 1e-300)
    return weight, middle - weight * mean


def _factors(side: Rows, tail: Tail, dimensions: tuple[int, ...]) -> Iterator[Variant]:
    """Yields the result times the factor that fits best; where that is 0, the other side leaves it out."""
    without = tail.carry(np.zeros(tail.value.shape))
    change = tail.carry(tail.value) - without
    square = norm(change) ** 2
    if square == 0 or norm(without) <= 1e-3 * norm(change):
        return  # of what is only multiplied, the pair's own factor tells more
    factor = float(np.vdot(change, side.other - without)) / square
    if abs(factor) < 1e-2:
        yield "missing_residual", f"The {{there}} one lacks {tail.name}, which the {{here}} one adds.", 0 * tail.value
    elif 1e-2 < abs(factor) < 1e2:
        shown = number_text(float(f"{factor:.4g}")) + reading_of(factor, dimensions, 1e-3)
        if shown == "1":
            return
        text = f"The {{there}} one adds {tail.name} times {shown}."
        yield "scale", text, factor * tail.value
