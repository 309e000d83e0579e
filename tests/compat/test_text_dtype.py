"""The dtype of text columns with every pandas: what is read as objects becomes text, and null stays null."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from nbkit import SchemaError
from nbkit.compat import text_dtype
from nbkit.schema import OPS, TEXT
from tests.support.fakes import make_ops


@pytest.fixture
def objects(monkeypatch):
    """An ops frame as pandas 2 reads it after `.assign(module=[...])`."""
    monkeypatch.setattr(text_dtype, "READS_TEXTS_AS_OBJECTS", True)
    ops = make_ops({}, {}, {})
    return ops.assign(module=pd.Series(["a", None, np.nan], dtype=object))


def test_objects_that_are_texts_become_texts_and_null_stays_null(objects):
    checked = OPS.check(objects)
    assert checked["module"].dtype == TEXT
    assert checked["module"].isna().tolist() == [False, True, True]
    assert checked["module"].dropna().tolist() == ["a"]
    assert objects["module"].dtype == object


def test_a_column_of_nulls_alone_becomes_texts(objects):
    assert OPS.check(objects.assign(source=pd.Series([None] * 3, dtype=object)))["source"].isna().all()


@pytest.mark.parametrize("values", [["a", 1, None], [1.5, 2.5, 3.5], [b"a", b"b", b"c"]])
def test_objects_that_are_no_texts_are_refused(objects, values):
    with pytest.raises(SchemaError, match=r"ops.module has dtype object, expected str"):
        OPS.check(objects.assign(module=pd.Series(values, dtype=object)))


def test_a_frame_that_needs_nothing_is_the_same_object(objects):
    ops = make_ops({})
    assert OPS.check(ops) is ops


def test_the_dtype_of_pandas_without_na_value_has_nan_as_null(monkeypatch):
    own = pd.StringDtype

    def dtype_of_2_2(storage=None, **options):
        if options:
            raise TypeError("StringDtype.__init__() got an unexpected keyword argument 'na_value'")
        return storage if storage == "pyarrow_numpy" else own(storage)

    monkeypatch.setattr(pd, "StringDtype", dtype_of_2_2)
    assert text_dtype._text_dtype() == "pyarrow_numpy"


def test_texts_are_held_by_arrow_and_null_is_nan():
    values = pd.Series(["a", None], dtype=TEXT)
    assert pa.array(values.array, from_pandas=True).to_pylist() == ["a", None]
    assert values.iloc[1] != values.iloc[1]
    assert text_dtype.dtype_name(values.dtype) == "str"
    assert text_dtype.dtype_name(np.dtype("int64")) == "int64"


def test_the_dtype_of_text_columns_is_told_from_other_dtypes_of_texts():
    dtypes = [pd.Series(["a"], dtype=TEXT).dtype, pd.StringDtype("python"), np.dtype(object), np.dtype("int64")]
    assert [bool(text_dtype.is_text(dtype)) for dtype in dtypes] == [True, False, False, False]
