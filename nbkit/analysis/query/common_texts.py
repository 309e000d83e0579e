"""Tells what the rows of each group have in common in a column of texts."""

import numpy as np
import pandas as pd

from nbkit.analysis.query.encoded import Codes, TextColumn
from nbkit.analysis.query.matches import Ids
from nbkit.schema import TEXT

# Texts up to which a group lists them; of more it says how many.
LISTED = 3
# Pairs of group and text up to which a flag for each is quicker than sorting them.
FLAGS = 1 << 23


def common_texts(values: pd.Series, codes: Codes, groups: Ids, count: int) -> TextColumn:
    """Returns a text per group: that of all its rows, up to three of them, or how many differ; missing ones aside.

    `values` are the texts, `codes` and `groups` say of each row its text and its group.
    """
    none = len(values)
    pairs = _pairs(groups, codes, count, none)
    group, code = pairs // (none + 1), pairs % (none + 1)
    differ = np.bincount(group, minlength=count)
    at = np.cumsum(differ) - differ
    common = np.full(count, -1, np.intp)
    common[differ == 1] = code[at[differ == 1]]
    texts = values.tolist()
    made: dict[str, int] = {}
    for index in np.flatnonzero(differ > 1).tolist():
        number = int(differ[index])
        listed = code[at[index] : at[index] + number] if number <= LISTED else ()
        text = ", ".join(str(texts[one]) for one in listed) or f"{number:,} different"
        common[index] = none + made.setdefault(text, len(made))
    return TextColumn(pd.Series([*texts, *made], dtype=TEXT), common)


def _pairs(groups: Ids, codes: Codes, count: int, none: int) -> Ids:
    """Returns each pair of a group and a text once, in order, as one number; a missing text is number `none`."""
    pairs = groups * (none + 1) + np.where(codes < 0, none, codes)
    if count * (none + 1) > FLAGS:
        pairs = np.unique(pairs)
    else:
        is_there = np.zeros(count * (none + 1), bool)
        is_there[pairs] = True
        pairs = np.flatnonzero(is_there)
    known: Ids = pairs[pairs % (none + 1) != none]
    return known
