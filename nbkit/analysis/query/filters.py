"""Filter texts of a table: what a person types over a column becomes a mask over its values."""

import re
from fnmatch import translate

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.errors import PatternError

Mask = npt.NDArray[np.bool_]
_NUMBER = re.compile(r"(-?\d+(?:\.\d*)?(?:e[+-]?\d+)?|-?\.\d+)\s*([a-zµ]*)", re.IGNORECASE)
_COMPARISON = re.compile(r"(!=|<=|>=|<|>|=|)\s*(.*)", re.DOTALL)
_COMPARE = {
    "": np.equal, "=": np.equal, "!=": np.not_equal,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_TIME_UNITS = {"": 1.0, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_MULTIPLES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def text_mask(values: pd.Series, filter_text: str) -> Mask:
    """Which texts fit.

    `linear` is contained (any case), `=x` is exact, `a*b` is a glob, `re:x` a regular expression, `null` is missing;
    `!` in front turns it around. Raises PatternError on a bad regular expression.
    """
    wanted = filter_text.strip()
    if wanted.startswith("!"):
        return ~text_mask(values, wanted[1:])
    if wanted.lower() == "null":
        return values.isna().to_numpy(bool)
    if wanted.startswith("="):
        return _as_mask(values == wanted[1:].strip())
    if wanted.startswith("re:"):
        return _regex_mask(values, wanted[3:])
    if "*" in wanted or "?" in wanted:
        return _regex_mask(values, translate(wanted), re.IGNORECASE)
    return contains(values, wanted)


def contains(values: pd.Series, text: str) -> Mask:
    """Which texts contain `text`, in any case; missing ones do not."""
    return _as_mask(values.str.contains(text, case=False, regex=False))


def number_mask(values: npt.NDArray[np.float64], filter_text: str, *, is_time: bool) -> Mask:
    """Which numbers fit.

    `>1.5`, `<=3`, `5` or `=5`, `!=5`, `2..8` (both ends in) and `null`, `!null`. Units are us, ms, s for times, else
    k, M, G, T. NaN stands for missing and fits `null` and `!=` only. Raises PatternError on anything else.
    """
    wanted = filter_text.strip()
    if wanted.lower() in ("null", "!null"):
        return np.isnan(values) ^ wanted.startswith("!")
    units = _TIME_UNITS if is_time else _MULTIPLES
    low, dots, high = wanted.partition("..")
    if dots:
        return (values >= _number(low, units)) & (values <= _number(high, units))
    match = _COMPARISON.fullmatch(wanted)
    assert match is not None, "the pattern takes any text"
    with np.errstate(invalid="ignore"):
        return np.asarray(_COMPARE[match[1]](values, _number(match[2], units)), dtype=bool)


def _number(text: str, units: dict[str, float]) -> float:
    match = _NUMBER.fullmatch(text.strip())
    unit = match[2].lower() if match else None
    if match is None or unit not in units:
        known = ", ".join(filter(None, units))
        raise PatternError(f"{text.strip()!r} is not a number; write >5, <=2, 3..8 or null, with a unit of {known}.")
    return float(match[1]) * units[unit]


def _regex_mask(values: pd.Series, pattern: str, flags: int = 0) -> Mask:
    try:
        search = re.compile(pattern, flags).search
    except re.error as error:
        raise PatternError(f"{pattern!r} is not a regular expression: {error}; mend it or leave 're:' out.") from error
    return np.fromiter((isinstance(v, str) and search(v) is not None for v in values), bool, len(values))


def _as_mask(flags: pd.Series) -> Mask:
    return flags.fillna(False).to_numpy(bool)
