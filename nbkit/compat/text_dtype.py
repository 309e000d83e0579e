"""The pandas dtype of text columns: `str` in pandas 3, in pandas 2 the dtype that behaves like it."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

# What frames call the dtype in their description, in messages and in files, whatever pandas calls it.
NAME = "str"
# pandas 2 reads texts as objects, so that what users add to a frame comes in as such.
READS_TEXTS_AS_OBJECTS = int(pd.__version__.partition(".")[0]) < 3


def _text_dtype() -> "pd.StringDtype[Any]":
    """Returns the dtype whose texts are held by pyarrow, and whose null is NaN."""
    try:
        return pd.StringDtype(na_value=np.nan)
    except TypeError:  # pandas 2.2 has it under another name
        return pd.StringDtype("pyarrow_numpy")


TEXT = _text_dtype()


def is_text(dtype: object) -> bool:
    """Returns whether this is the dtype of text columns."""
    return isinstance(dtype, pd.StringDtype) and dtype == TEXT


def dtype_name(dtype: object) -> str:
    """Returns the name of a dtype, of the dtype of text columns `str`."""
    return NAME if is_text(dtype) else str(dtype)


def with_text_columns(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Returns the frame with those columns of objects as text columns that hold texts and nulls alone.

    Returns the frame itself where there is none, as with a pandas that reads texts as such. `names` are those of
    columns that should hold texts.
    """
    if not READS_TEXTS_AS_OBJECTS:
        return frame
    objects = [name for name in names if frame[name].dtype == object and _holds_texts(frame[name])]
    return frame.astype(dict.fromkeys(objects, TEXT)) if objects else frame


def _holds_texts(values: pd.Series) -> bool:
    return pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty")


def arrow_schema(frame: pd.DataFrame) -> pa.Schema:
    """Returns the Arrow types of a frame and how pandas reads them back, the same text from every pandas.

    A file that one pandas wrote must be readable by any other, which may not know the name of the dtype.
    """
    schema = pa.Schema.from_pandas(frame, preserve_index=False)
    about = schema.pandas_metadata
    for column in about["columns"]:
        if is_text(frame[column["name"]].dtype):
            column["numpy_type"] = NAME
    return schema.with_metadata({**schema.metadata, b"pandas": json.dumps(about).encode()})
