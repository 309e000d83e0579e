"""Approximates the exponential function in the ops built on it."""

from collections.abc import Callable
from functools import cache
from math import log2
from typing import Any

import numpy as np
import torch
from numpy.polynomial import Chebyshev, Polynomial
from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind

Exp = Callable[[Tensor], Tensor]


def approximate_exp(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Computes 2**fraction as a polynomial of degree `size`: relative errors 4e-2, 2e-3, 1e-4, 4e-6 for 1 to 4."""
    if call.name not in FORMULAS:
        raise NotApplicableError(f"{call.func} is not built on exp; {', '.join(sorted(FORMULAS))} are")
    result = call.results[0]
    if not result.is_floating_point():
        raise NotApplicableError(f"{call.func} has no floating-point result")
    wide = call.inputs[0].to(torch.float64)
    value = FORMULAS[call.name](wide, lambda x: fast_exp(x, int(size)), call)
    return [value.to(result.dtype)]


def fast_exp(x: Tensor, degree: int) -> Tensor:
    """Returns exp(x) as most kernels compute it: a power of two times a polynomial in the fraction."""
    power = x * log2(np.e)
    whole = power.floor()
    fraction = torch.where(power.isfinite(), power - whole, 0.0)
    value = torch.zeros_like(x)
    for coefficient in reversed(coefficients(degree)):
        value = value * fraction + coefficient
    return value * torch.exp2(whole)


@cache
def coefficients(degree: int) -> tuple[float, ...]:
    """Returns coefficients of the polynomial that meets 2**x in the Chebyshev points of [0, 1], constant term first."""
    fitted = Chebyshev.interpolate(lambda x: 2.0**x, degree, domain=[0, 1])
    return tuple(fitted.convert(kind=Polynomial).coef.tolist())


def _sigmoid(x: Tensor, exp: Exp, call: Call) -> Tensor:
    return 1 / (1 + exp(-x))


def _softmax(x: Tensor, exp: Exp, call: Call) -> Tensor:
    dim = call.argument("dim")
    powers = exp(x - x.amax(dim, keepdim=True))
    return powers / powers.sum(dim, keepdim=True)


def _log_softmax(x: Tensor, exp: Exp, call: Call) -> Tensor:
    dim = call.argument("dim")
    x = x - x.amax(dim, keepdim=True)
    return x - exp(x).sum(dim, keepdim=True).log()


FORMULAS: dict[str, Callable[[Tensor, Exp, Call], Tensor]] = {
    "exp": lambda x, exp, call: exp(x),
    "sigmoid": _sigmoid,
    "silu": lambda x, exp, call: x * _sigmoid(x, exp, call),
    "tanh": lambda x, exp, call: 1 - 2 / (1 + exp(2 * x)),
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
}
KINDS = (
    Kind(
        "approximate_exp",
        approximate_exp,
        "exp() is a polynomial of low degree",
        "the degree (relative errors 4e-2, 2e-3, 1e-4, 4e-6 for 1 to 4)",
        2,
        smallest=1,
        largest=8,
    ),
)
