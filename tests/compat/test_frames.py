"""A frame of arrays is the one that pandas makes of them, in pandas 3 and as for pandas 2."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from nbkit.compat import frames
from nbkit.compat.frames import frame_of
from nbkit.schema import OPS, TEXT
from nbkit.schema.table import nullable

ARRAYS = {
    "number": np.arange(6, dtype=np.int64)[::2],
    "share": np.array([0.5, np.nan, 2.0]),
    "is": np.array([True, False, True]),
    "text": pd.array(["a", None, "c"], dtype=TEXT),
    "count": nullable(np.array([3, -1, 0])),
}


@pytest.fixture(params=["pandas here", "pandas 2"])
def way(request, monkeypatch):
    if request.param == "pandas 2":
        monkeypatch.setattr(frames, "create_dataframe_from_blocks", None)


@pytest.mark.parametrize("length", [3, 0])
def test_it_is_the_frame_that_pandas_makes(way, length):
    arrays = {name: values[:length] for name, values in ARRAYS.items()}
    frame = frame_of([*arrays.values()], pd.Index([*arrays]))
    expected = pd.DataFrame(arrays, index=pd.RangeIndex(length))
    assert_frame_equal(frame, expected, check_index_type="exact", check_column_type="exact")
    assert_frame_equal(frame[frame["is"]].assign(more=1.0), expected[expected["is"]].assign(more=1.0))
    frame.loc[len(frame)] = frame.iloc[0] if length else [1, 1.0, True, "b", 1]
    assert len(frame) == length + 1
    assert frame_of([], pd.Index([])).shape == (0, 0)


def test_what_a_user_changes_in_one_frame_stays_there(way):
    one, other = OPS.frame(), OPS.frame()
    one.columns.name = "mine"
    assert other.columns.name is None
    assert OPS.frame().columns.name is None


def test_a_frame_can_be_written_to_whatever_its_columns_came_from(way):
    fixed = np.broadcast_to(np.array([1.0]), 2)
    frame = frame_of([fixed, pd.Series([1, 2]).to_numpy()], pd.Index(["one", "other"]))
    frame.loc[0] = [5.0, 5]
    assert frame.to_numpy().tolist() == [[5.0, 5.0], [1.0, 2.0]] and fixed.tolist() == [1.0, 1.0]
