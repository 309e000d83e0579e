"""Encodes the columns of the diff table: compared tensors with their rank, worst first."""

import numpy as np
import pandas as pd

from nbkit.analysis.query.encoded import Columns, encode_frame, text_column
from nbkit.analysis.query.predicates import Mask
from nbkit.numerics.noise_ratio import HARMLESS, STATUSES
from nbkit.schema import OPS

# Of the op that a row belongs to.
FROM_OPS = ("model", "source")
METRICS = ("noise_ratio", "max_abs_error", "max_rel_error", "local_error", "propagated_error", "total_error")


def encode_diffs(diffs: pd.DataFrame, ops: pd.DataFrame) -> Columns:
    """Returns the rows column by column, with model and source of their op and `rank`, counted from 1 for the worst.

    `diffs` may have columns that the schema does not know, such as those of a later nbkit.
    """
    known = OPS.check(ops)[list(FROM_OPS)].iloc[diffs["op_id"].to_numpy()]
    rank = np.empty(len(diffs))
    rank[worst_first(diffs)] = np.arange(1, len(diffs) + 1)
    columns = encode_frame(diffs)
    texts = {name: text_column(known[name]) for name in FROM_OPS}
    return Columns(len(diffs), {**columns.texts, **texts}, {**columns.numbers, "rank": rank})


def worst_first(diffs: pd.DataFrame) -> np.ndarray:
    """Returns row numbers by verdict, then by noise ratio, largest first; ties keep call order."""
    ranks = {status: rank for rank, status in enumerate(STATUSES)}
    unknown = STATUSES.index(HARMLESS[0]) - 0.5  # a verdict that is not known is looked at before those that are right
    # A bad row without a ratio (NaN on one side) comes after those that have one.
    keys = pd.DataFrame({"rank": diffs["status"].map(ranks).fillna(unknown), "noise": -diffs["noise_ratio"]})
    return keys.reset_index(drop=True).sort_values(["rank", "noise"], kind="stable").index.to_numpy()


def is_wrong(rows: Columns) -> Mask:
    """Returns rows whose verdict asks for a look."""
    status = rows.texts["status"]
    return status.where(~status.values.isin(HARMLESS).to_numpy(bool), missing=False)
