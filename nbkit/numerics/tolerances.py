"""Holds tolerances a user sets for single ops or dtypes, in place of the verdict by noise ratio."""

from collections.abc import Mapping
from typing import Any

from nbkit.errors import OptionError, nearest
from nbkit.numerics.precision import DTYPES
from nbkit.patterns import Matcher, op_matcher

Tolerance = tuple[float, float]
DEFAULT = "default"


class Tolerances:
    """Holds absolute and relative tolerance by op and dtype; what is more special wins.

    Keys are an op pattern ("aten.mm", "*norm*"), a dtype ("bfloat16", torch.bfloat16), a tuple of both, or "default";
    values are (atol, rtol). For an op and a dtype the order is: both, op, dtype, default; of two patterns the one
    given first.
    """

    def __init__(self, tolerances: Mapping[Any, Any] | None) -> None:
        self.by_op: list[tuple[Any, Matcher, str | None, Tolerance]] = []
        self.by_dtype: dict[str, Tolerance] = {}
        self.unused: set[Any] = set()
        self.known: dict[tuple[str, str], Tolerance | None] = {}
        if tolerances is not None and not isinstance(tolerances, Mapping):
            raise OptionError(
                f"tolerances must be a dictionary, got {tolerances!r}; give such as {{'float16': (1e-3, 1e-3)}}."
            )
        for key, value in (tolerances or {}).items():
            self._add(_by_name(key), _checked(key, value))

    def _add(self, key: Any, tolerance: Tolerance) -> None:
        self.unused.add(key)
        if key == DEFAULT or key in DTYPES:
            self.by_dtype[key] = tolerance
            return
        op, dtype = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if dtype is not None and dtype not in DTYPES:
            raise OptionError(f"tolerances: {dtype!r} is no dtype; {nearest(str(dtype), DTYPES)}")
        self.by_op.append((key, op_matcher(op), dtype, tolerance))

    def of(self, op: str, dtype: str) -> Tolerance | None:
        """Returns (atol, rtol) for this op and dtype; None where nothing was set."""
        if (op, dtype) not in self.known:
            self.known[op, dtype] = self._find(op, dtype)
        return self.known[op, dtype]

    def _find(self, op: str, dtype: str) -> Tolerance | None:
        fits = [entry for entry in self.by_op if entry[2] in (dtype, None) and entry[1](op)]
        # Stable: of two equally special ones the first stays first.
        for key, _, _, tolerance in sorted(fits, key=lambda entry: entry[2] is None):
            self.unused -= {key}
            return tolerance
        by_dtype = dtype if dtype in self.by_dtype else DEFAULT
        self.unused -= {by_dtype}
        return self.by_dtype.get(by_dtype)


def _by_name(key: Any) -> Any:
    """Returns a key with the dtype in it, such as torch.float32, by its name."""
    if isinstance(key, tuple) and len(key) == 2:
        return key[0], _by_name(key[1])
    name = str(key).removeprefix("torch.")
    return name if name in DTYPES else key


def _checked(key: Any, value: Any) -> Tolerance:
    try:
        atol, rtol = (float(number) for number in value)
    except (TypeError, ValueError):
        atol = -1.0
        rtol = -1.0
    if not (atol >= 0 and rtol >= 0):
        raise OptionError(f"tolerances[{key!r}] is {value!r}; give (atol, rtol), two numbers from 0 up.")
    return atol, rtol
