"""Predicates say which rows a table shows: each becomes a mask over its columns.

A predicate is plain JSON: `{"column", "op", "value", "not"}`, or `{"any": [...]}`, `{"all": [...]}` of others. Texts
know `equals`, `in` (a list), `contains` (any case), `regex` (with `ignore_case`) and `inside` (a path and below);
numbers know `equals`, `below`, `at_most`, `above` and `at_least`; both know `null`. What is missing fits `null` alone,
and `not` turns any of them around. tests/analysis/query/cases.json has a case of each: the report's executor,
widgets/src/report/execute/fits.js, is tested with the same.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from nbkit.analysis.query.encoded import Columns, Floats
from nbkit.errors import OptionError, PatternError, nearest

Mask = npt.NDArray[np.bool_]
Predicate = Mapping[str, Any]


def mask_of(columns: Columns, predicates: Sequence[Predicate]) -> tuple[Mask, dict[str, str]]:
    """Returns rows that fit all predicates, and by column why a regular expression was left out as unusable.

    Raises OptionError on a column or op that is not known.
    """
    mask, errors = np.ones(len(columns), bool), dict[str, str]()
    for predicate in predicates:
        try:
            mask &= fits(columns, predicate)
        except PatternError as error:
            errors[str(predicate.get("column"))] = str(error)
    return mask, errors


def fits(columns: Columns, predicate: Predicate) -> Mask:
    """Returns rows that fit one predicate."""
    if "any" in predicate or "all" in predicate:
        is_any = "any" in predicate
        masks = [fits(columns, part) for part in predicate["any" if is_any else "all"]]
        combine = np.logical_or if is_any else np.logical_and
        mask = combine.reduce([np.full(len(columns), not is_any), *masks])
    else:
        mask = _column_fits(columns, predicate)
    return np.asarray(~mask if predicate.get("not") else mask, dtype=bool)


def _column_fits(columns: Columns, predicate: Predicate) -> Mask:
    name, op = predicate["column"], predicate["op"]
    texts = columns.texts.get(name)
    if texts is not None:
        if op == "null":
            return texts.codes < 0
        return texts.where(_known(TEXT_OPS, op)(texts.values, predicate), missing=False)
    values = columns.number(name)
    if op == "null":
        return np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(_known(NUMBER_OPS, op)(values, float(predicate["value"])), dtype=bool)


def _contains(values: pd.Series, predicate: Predicate) -> Mask:
    return _as_mask(pc.match_substring(pa.array(values, pa.string()), predicate["value"], ignore_case=True))


def _regex(values: pd.Series, predicate: Predicate) -> Mask:
    pattern, ignore_case = predicate["value"], bool(predicate.get("ignore_case"))
    try:
        return _as_mask(pc.match_substring_regex(pa.array(values, pa.string()), pattern, ignore_case=ignore_case))
    except pa.ArrowInvalid as invalid:
        # RE2 neither looks around nor back; Python's re does, and takes a backslash and a letter for ASCII as RE2 does.
        try:
            search = re.compile(pattern, re.ASCII | (re.IGNORECASE if ignore_case else 0)).search
        except re.error:
            reason = str(invalid).splitlines()[0].removeprefix("Invalid regular expression: ")
            raise PatternError(f"The kernel cannot use the regular expression {pattern!r}: {reason}.") from invalid
        return np.fromiter((search(text) is not None for text in values), bool, len(values))


def _inside(values: pd.Series, predicate: Predicate) -> Mask:
    path = predicate["value"]
    return _as_mask((values == path) | values.str.startswith(f"{path}.") if path else values.notna())


def _as_mask(flags: pd.Series | pa.BooleanArray) -> Mask:
    return np.asarray(flags, dtype=bool)


TEXT_OPS: dict[str, Callable[[pd.Series, Predicate], Mask]] = {
    "equals": lambda values, predicate: _as_mask(values == predicate["value"]),
    "in": lambda values, predicate: values.isin(predicate["value"]).to_numpy(bool),
    "contains": _contains,
    "regex": _regex,
    "inside": _inside,
}
NUMBER_OPS: dict[str, Callable[[Floats, float], Mask]] = {
    "equals": np.equal,
    "below": np.less,
    "at_most": np.less_equal,
    "above": np.greater,
    "at_least": np.greater_equal,
}


def _known(ops: Mapping[str, Any], op: str) -> Any:
    if op not in ops:
        raise OptionError(f"A column of this kind knows no {op!r}; {nearest(op, ['null', *ops])}")
    return ops[op]
