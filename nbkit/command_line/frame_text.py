"""Rows of a frame as text for a terminal."""

import pandas as pd

from nbkit.errors import OptionError, nearest
from nbkit.trace.trace import Trace
from nbkit.views.summary.names import shown

CELL_WIDTH = 60


def frame_of(trace: Trace, name: str) -> pd.DataFrame:
    """The frame of that name. Raises OptionError, with the names there are."""
    if name not in trace.frames:
        raise OptionError(f"This trace has no frame {name!r}; {nearest(name, trace.frames)}")
    return trace.frames[name]


def rows_of(frame: pd.DataFrame, sort: str | None, columns: list[str] | None) -> pd.DataFrame:
    """The rows, numbers largest first and text by the alphabet if sorted, in these columns. Raises OptionError."""
    for name in [*(columns or []), *([sort] if sort else [])]:
        if name not in frame:
            raise OptionError(f"There is no column {name!r}; {nearest(name, map(str, frame))}")
    if sort:
        is_up = not pd.api.types.is_numeric_dtype(frame[sort])
        frame = frame.sort_values(sort, ascending=is_up, kind="stable")
    return frame[columns] if columns else frame


def frame_text(frame: pd.DataFrame, width: int | None) -> str:
    """The frame in columns, in blocks of that width; what could disturb a terminal is escaped, null is empty."""
    texts = pd.DataFrame({name: [_text(value) for value in values] for name, values in frame.items()}, dtype="str")
    if not len(texts):
        return f"no rows; columns: {', '.join(map(str, frame))}"
    return str(texts.to_string(index=False, line_width=width, max_colwidth=CELL_WIDTH + 1))


def _text(value: object) -> str:
    if value is None or value is pd.NA or value != value:  # NaN
        return ""
    return f"{value:.6g}" if isinstance(value, float) else shown(str(value), CELL_WIDTH)
