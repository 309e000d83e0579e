"""The diff table's query: which compared tensors match and in which order, the worst first if nothing else is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype

from nbkit.analysis.query.encoded import EncodedOps, Floats, text_column
from nbkit.analysis.query.filters import Mask
from nbkit.analysis.query.op_table import Matches, as_mask, choice_mask, ordered
from nbkit.numerics.noise_ratio import HARMLESS, STATUSES
from nbkit.schema import OPS

# Of the op that a row belongs to.
FROM_OPS = ("model", "source")
METRICS = ("noise_ratio", "max_abs_error", "max_rel_error", "local_error", "propagated_error", "total_error")


@dataclass(frozen=True)
class DiffQuery:
    """What to show: every given condition must hold.

    `filters` maps a column to its filter text, `choices` to the one text it must be, `thresholds` to the least value;
    a row whose verdict is bad passes a threshold also where its metric is not known. The modules are as in `OpQuery`.
    """

    search: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    model: str | None = None
    module: str | None = None
    outside_modules: bool = False
    sort: str = "rank"
    is_descending: bool = False


def encode_diffs(diffs: pd.DataFrame, ops: pd.DataFrame) -> EncodedOps:
    """The rows column by column, with model and source of their op and `rank`, their place from the worst on.

    `diffs` may have columns that the schema does not know, such as those of a later nbkit.
    """
    known = OPS.check(ops)[list(FROM_OPS)].iloc[diffs["op_id"].to_numpy()]
    is_text = {name: is_string_dtype(diffs[name]) for name in diffs}
    texts = [*(diffs[name] for name in diffs if is_text[name]), *(known[name] for name in FROM_OPS)]
    numbers = [diffs[name] for name in diffs if not is_text[name]]
    rank = np.empty(len(diffs))
    rank[worst_first(diffs)] = np.arange(len(diffs))
    return EncodedOps(
        {str(values.name): text_column(values) for values in texts},
        {**{str(values.name): values.to_numpy(np.float64, na_value=np.nan) for values in numbers}, "rank": rank},
        np.zeros(len(diffs), np.int64),
    )


def worst_first(diffs: pd.DataFrame) -> np.ndarray:
    """Places of the rows by verdict, then by noise ratio, largest first; ties keep call order."""
    ranks = {status: rank for rank, status in enumerate(STATUSES)}
    other = STATUSES.index(HARMLESS[0]) - 0.5  # a verdict that is not known is looked at before those that are right
    # A bad row without a ratio (NaN on one side) comes after those that have one.
    keys = pd.DataFrame({"rank": diffs["status"].map(ranks).fillna(other), "noise": -diffs["noise_ratio"]})
    return keys.reset_index(drop=True).sort_values(["rank", "noise"], kind="stable").index.to_numpy()


def is_wrong(rows: EncodedOps) -> Mask:
    """Rows whose verdict asks for a look."""
    status = rows.texts["status"]
    return status.where(~status.values.isin(HARMLESS).to_numpy(bool), missing=False)


def diff_query(rows: EncodedOps, wanted: DiffQuery) -> Matches:
    """Matching rows in order; missing values come last. A filter that cannot be used is left out and in `errors`.

    Raises OptionError on an unknown column.
    """
    mask, errors = as_mask(rows, wanted)
    for column, text in wanted.choices.items():
        mask &= choice_mask(rows, column, text)
    for column, least in wanted.thresholds.items():
        mask &= threshold_mask(rows, column, least)
    return Matches(ordered(rows, np.flatnonzero(mask), wanted.sort, wanted.is_descending), errors)


def threshold_mask(rows: EncodedOps, column: str, least: float) -> Mask:
    """Rows whose metric is `least` or more, and bad rows of which it is not known."""
    values: Floats = rows.number(column)
    with np.errstate(invalid="ignore"):
        return np.asarray((values >= least) | (np.isnan(values) & is_wrong(rows)), dtype=bool)
