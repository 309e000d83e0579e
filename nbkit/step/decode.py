"""Decodes the JSON text of cells: shapes of tensors, and the arguments and inputs of ops."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

Shape = tuple[int | None, ...]  # null where a size is not known


@lru_cache(maxsize=16_384)
def shape_of(text: str) -> Shape:
    """Returns the sizes that the text of a shape holds."""
    return tuple(json.loads(text))


def shapes_in(column: "pd.Series[str]") -> list[Shape | None]:
    """Returns the shape of each cell of a column; null where there is none."""
    codes, texts = pd.factorize(column)
    shapes = [*map(shape_of, texts), None]  # the last entry answers for -1
    return [shapes[code] for code in codes.tolist()]


def cells_in(column: "pd.Series[Any]") -> list[Any]:
    """Returns the cells of a column; null where there is none."""
    return column.astype(object).where(column.notna(), None).tolist()


@lru_cache(maxsize=16_384)
def sizes_of(text: str) -> tuple[int, ...]:
    """Returns the same of one shape with -1 where a size is not known."""
    return tuple(-1 if size is None else size for size in shape_of(text))


def as_shape(sizes: Sequence[int]) -> Shape:
    """Returns such sizes as a shape."""
    return tuple(None if size == -1 else size for size in sizes)


def arguments_of(text: object) -> Mapping[str, Any]:
    """Returns the arguments of an op by name, as `ops.arguments` has them; none where none were recorded."""
    return json.loads(text) if isinstance(text, str) and text else {}


def inputs_in(text: object) -> list[Any] | None:
    """Returns shapes, dtypes or strides of the inputs of an op, as `ops.input_shapes` and the like have them.

    Null is what was not recorded. A list of tensors is a list of shapes.
    """
    return json.loads(text) if isinstance(text, str) else None
