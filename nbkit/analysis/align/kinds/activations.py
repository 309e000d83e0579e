"""Tests whether the two sides apply other activation functions to the same input, also inside a gated product."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np

from nbkit.analysis.align.kinds.case import FEWEST, PAIRED, Case, CaseSide, Floats, at, floats, norm
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Array

Function = Callable[[Floats], Floats]


@cache
def _error_function() -> tuple[Floats, Floats]:
    grid = np.linspace(-6, 6, 24_001)
    return grid, np.array([math.erf(one) for one in grid])


def erf(values: Floats) -> Floats:
    """Returns the error function within 3e-8: interpolated, as numpy has none."""
    grid, known = _error_function()
    return np.interp(values, grid, known)


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))


def _softplus(values: Floats) -> Floats:
    return np.asarray(np.logaddexp(0.0, values))


def _gelu_tanh(values: Floats) -> Floats:
    return np.asarray(0.5 * values * (1 + np.tanh((2 / np.pi) ** 0.5 * (values + 0.044715 * values**3))))


def _elu(values: Floats) -> Floats:
    return np.where(values > 0, values, np.expm1(np.minimum(values, 0.0)))


def _selu(values: Floats) -> Floats:
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return np.asarray(scale * np.where(values > 0, values, alpha * np.expm1(np.minimum(values, 0.0))))


NONE = "none"
FUNCTIONS: Mapping[str, Function] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / 2**0.5)),
    "gelu_tanh": _gelu_tanh,
    "quick_gelu": lambda x: x * _sigmoid(1.702 * x),
    "silu": lambda x: x * _sigmoid(x),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "softplus": _softplus,
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "elu": _elu,
    "selu": _selu,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "relu6": lambda x: np.clip(x, 0, 6),
    "relu2": lambda x: np.maximum(x, 0.0) ** 2,
    "exp": np.exp,
    NONE: lambda x: x,
}


@dataclass(frozen=True)
class Gate:
    """Holds what an activation is applied to, and the factor beside it, if there is one."""

    name: str
    value: Array
    other_name: str = ""
    other: Array | None = None


@kind_test("activation", 160, lambda case: case.is_comparable and case.left.size >= FEWEST)
def activation(case: Case) -> Kinds:
    """Tests whether L = f(x) and R = g(x), or both times the same factor, for two activations f and g."""
    for gate in gates(case):
        first, second = (named_function(case, gate, side) for side in case.sides)
        if first is None or second is None or first == second:
            continue
        what = f"the gate {gate.name}" if gate.other is not None else gate.name
        message = f"The activation of {what} is {first} on the left and {second} on the right."
        yield case.told("activation", message, applied(gate, second))


def gates(case: Case) -> Iterator[Gate]:
    """Yields known values of the pair's shape, those times another one, and the halves of what is twice as wide."""
    found = [(one.name, view) for one, view in case.shaped(case.shape) if np.issubdtype(view.dtype, np.floating)]
    for name, view in found:
        yield Gate(name, view)
    for one, other in permutations(found[:PAIRED], 2):
        yield Gate(*one, *other)
    for name, halves in _halved(case):
        yield Gate(f"the first half of {name}", halves[0], f"the second half of {name}", halves[1])
        yield Gate(f"the second half of {name}", halves[1], f"the first half of {name}", halves[0])


def _halved(case: Case) -> Iterator[tuple[str, tuple[Array, Array]]]:
    if not case.shape:
        return
    width = case.shape[-1]
    for one in case.known:
        if one.value.shape == (*case.shape[:-1], 2 * width) and np.issubdtype(one.value.dtype, np.floating):
            yield one.name, (one.value[..., :width], one.value[..., width:])
            yield one.name, (one.value[..., 0::2], one.value[..., 1::2])


def named_function(case: Case, gate: Gate, side: CaseSide) -> str | None:
    """Returns the activation by which a side is made of a gate, told by a few elements; null if it is none."""
    wanted, beside = (one.reshape(-1)[case.places] for one in (side.values, side.beside))
    value = at(gate.value, case.places)
    factor = None if gate.other is None else at(gate.other, case.places)
    allowed = max(case.limit * norm(wanted - beside), 1e-300)
    errors = {
        name: norm(wanted - (function(value) if factor is None else function(value) * factor))
        for name, function in FUNCTIONS.items()
    }
    best, name = min((error, name) for name, error in errors.items())
    # Of positive numbers alone relu, elu and more are the numbers themselves.
    if errors[NONE] <= best + 1e-12 * norm(wanted):
        name = NONE
    made = FUNCTIONS[name](value) if factor is None else FUNCTIONS[name](value) * factor
    return name if best <= allowed and case.holds(made, wanted) else None


def applied(gate: Gate, name: str) -> Floats:
    """Returns an activation of a gate, times what stands beside it."""
    value = FUNCTIONS[name](floats(gate.value))
    return value if gate.other is None else value * floats(gate.other)
