"""Text columns built from codes: each distinct text is written once and taken by number."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

TEXT = pd.StringDtype(na_value=np.nan)


def text_column(codes: np.ndarray, texts: Sequence[str | None]) -> pd.array:
    """`str` array of `texts[code]` for each code; a negative code is null."""
    values = pa.array(texts, pa.large_string())
    indices = pa.array(codes, mask=codes < 0) if (codes < 0).any() else pa.array(codes)
    return TEXT.__from_arrow__(values.take(indices))


def nullable(values: np.ndarray) -> pd.array:
    """`Int64` array of integers in which negative means null."""
    return pd.arrays.IntegerArray(values.astype(np.int64, copy=True), values < 0)
