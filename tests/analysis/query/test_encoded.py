import numpy as np
import pandas as pd
import pytest

from nbkit.analysis.query.encoded import TextColumn
from nbkit.schema import TEXT


@pytest.mark.parametrize(("count", "dtype"), [(3, np.uint16), (2**16 + 1, np.uint32)])
def test_ranks_order_the_rows_by_text_however_many_texts_there_are(count, dtype):
    codes = np.arange(count)[::-1]
    ranks = TextColumn(pd.Series([f"{number:05}" for number in range(count)], dtype=TEXT), codes).ranks()
    assert ranks.dtype == dtype
    assert np.array_equal(ranks, codes)
