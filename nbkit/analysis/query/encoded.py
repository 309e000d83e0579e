"""Columns hold a table as codes and numbers, made once so that filters and sorts take milliseconds."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_string_dtype

from nbkit.errors import OptionError, nearest
from nbkit.schema import TEXT

Codes = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TextColumn:
    """A text column: the different texts, and for each row the index of its own; -1 is missing."""

    values: pd.Series
    codes: Codes

    def where(self, is_wanted: npt.NDArray[np.bool_], *, missing: bool) -> npt.NDArray[np.bool_]:
        """Returns rows whose text is wanted; those without a text are wanted if `missing`."""
        return np.append(is_wanted, missing)[self.codes]

    def ranks(self) -> npt.NDArray[np.integer]:
        """Ranks the rows by text, in the smallest dtype (numpy sorts 16 bits in linear time)."""
        order = self.values.argsort().to_numpy()
        rank = np.empty(len(order) + 1, np.uint16 if len(order) < 2**16 else np.uint32)
        rank[order] = np.arange(len(order))
        return np.asarray(rank[self.codes])

    def column(self) -> pd.Series:
        """Returns the texts of all rows."""
        texts: pd.Series = self.values.reindex(self.codes).reset_index(drop=True)
        return texts

    def text_at(self, row: int) -> str | None:
        code = self.codes[row]
        return None if code < 0 else str(self.values.iloc[code])


@dataclass(frozen=True)
class Columns:
    """A table column by column: texts as codes, numbers as float64 with NaN for missing.

    `orders` keeps the rows in the order of a column, by its name and whether it descends.
    """

    count: int
    texts: dict[str, TextColumn]
    numbers: dict[str, Floats]
    orders: dict[tuple[str, bool], npt.NDArray[np.int64]] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return self.count

    def number(self, name: str) -> Floats:
        """Returns a column of numbers. Raises OptionError if there is none of that name."""
        if name not in self.numbers:
            raise OptionError(f"The table has no column {name!r}; {nearest(name, [*self.texts, *self.numbers])}")
        return self.numbers[name]


def encode_frame(frame: pd.DataFrame) -> Columns:
    """Returns the columns of any frame, also those that the schema does not know, such as a later nbkit's."""
    is_text = {name: is_string_dtype(frame[name]) for name in frame}
    texts = {str(name): text_column(frame[name]) for name in frame if is_text[name]}
    numbers = {str(name): frame[name].to_numpy(np.float64, na_value=np.nan) for name in frame if not is_text[name]}
    return Columns(len(frame), texts, numbers)


def text_column(values: pd.Series) -> TextColumn:
    """Returns the encoded column."""
    codes, different = pd.factorize(values)
    return TextColumn(pd.Series(different, dtype=TEXT), np.asarray(codes, np.intp))
