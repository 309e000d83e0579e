"""Makes a frame of arrays that are its columns already: pandas 3 has a way that does not look at each of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

try:
    from pandas.api.internals import create_dataframe_from_blocks  # type: ignore[import-not-found]
except ImportError:  # pandas 2
    create_dataframe_from_blocks = None


def frame_of(arrays: Sequence[Any], columns: pd.Index) -> pd.DataFrame:
    """Returns the frame of these columns, of one length: numpy arrays, or pandas' own of dtypes that numpy lacks.

    The memory stays that of the arrays, but for those that cannot be written to.
    """
    index = pd.RangeIndex(len(arrays[0]) if arrays else 0)
    own = [array.copy() if isinstance(array, np.ndarray) and not array.flags.writeable else array for array in arrays]
    if create_dataframe_from_blocks is None:
        made = pd.DataFrame(dict(enumerate(own)), index=index, copy=False)
        made.columns = columns
        return made
    blocks = [
        (array[np.newaxis] if isinstance(array, np.ndarray) else array, np.array((place,)))
        for place, array in enumerate(own)
    ]
    frame: pd.DataFrame = create_dataframe_from_blocks(blocks, index, columns)
    return frame
