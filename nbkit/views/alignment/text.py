"""The alignment as text: a line for each pair, its mark, both sides in columns, and their difference."""

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from nbkit.trace.trace import Trace
from nbkit.units import general, is_null
from nbkit.views.alignment.verdicts import SIDES, results_of, rows_of
from nbkit.views.sections.writers import without_middle
from nbkit.views.summary.names import shown

PREFIXES = {"left": "", "right": "right_"}
# Characters that the name of a result keeps, however narrow its side is.
FEWEST = 12
DIGITS = 5


def side_by_side_text(trace: Trace, column_size: int = 60) -> str:
    """Returns a line per row of `alignment`: `012 ~ | RESULT float32 2:2x64 Softmax attn | ... | a=1e-05 r=3e-04`.

    A side has kind, dtype, rank and sizes, op and name, and is blank where it has no such result. Its columns are as
    wide as what they hold; where they take more than `column_size` characters together, names and then ops lose their
    middle. `a` and `r` are the largest absolute and relative error; without them `e` is the error of the whole result.
    """
    rows = rows_of(trace)
    if not len(rows):
        return "No results."
    kinds = _kinds(trace)
    sides = [_side(rows, side, kinds, column_size) for side in SIDES]
    digits = max(len(str(len(rows) - 1)), 3)
    lines = zip(rows["mark"].fillna("?"), *sides, _errors(rows), strict=True)
    return "\n".join(
        f"{number:0{digits}d} {mark} | {left} | {right}{error}".rstrip()
        for number, (mark, left, right, error) in enumerate(lines)
    )


def _kinds(trace: Trace) -> dict[int, str]:
    """Returns what the results of the model are, by result_id: those that it returns are its outputs."""
    results = results_of(trace)
    known = results[results["is_output"].astype(bool)]
    return {int(result_id): "OUTPUT" for result_id in known["result_id"]}


def _side(rows: pd.DataFrame, side: str, kinds: dict[int, str], size: int) -> list[str]:
    """Returns the text of one side of each row, all of one width."""
    ids = rows[f"{side}_id"]
    prefix = PREFIXES[side]
    is_there = ids.notna().to_numpy(bool)
    cells: list[list[str]] = [
        [
            kinds.get(-1 if is_null(one) else int(one), "RESULT" if kind == "op" else str(kind or "result").upper())
            for one, kind in zip(ids, rows["kind"].astype(object).where(rows["kind"].notna(), "result"), strict=True)
        ],
        _texts(rows[f"{prefix}dtype"]),
        [_shape(text) for text in rows[f"{prefix}shape"].astype(object)],
        _texts(rows[f"{prefix}op"]),
        _texts(rows[f"{prefix}name"]),
    ]
    cells = [[text if there else "" for text, there in zip(column, is_there, strict=True)] for column in cells]
    widths = _widths(cells, size)
    lines = (
        " ".join(without_middle(text, width).ljust(width) for text, width in zip(row, widths, strict=True) if width)
        for row in zip(*cells, strict=True)
    )
    return list(lines)


def _widths(cells: Sequence[Sequence[str]], size: int) -> list[int]:
    """Returns how wide each column is: as its longest text, but names and then ops are cut to keep to `size`."""
    widths = [max(map(len, column), default=0) for column in cells]
    for index in (4, 3):
        above = sum(widths) + sum(width > 0 for width in widths) - 1 - size
        if above > 0:
            widths[index] = max(widths[index] - above, min(FEWEST, widths[index]))
    return widths


def _texts(values: pd.Series) -> list[str]:
    return [shown(text) if isinstance(text, str) else "" for text in values.astype(object)]


def _shape(text: Any) -> str:
    """Formats sizes with their rank before them: `2:4x64`, of a scalar `0:`."""
    if not isinstance(text, str):
        return ""
    sizes = json.loads(text)
    return f"{len(sizes)}:{'x'.join('?' if size is None else str(size) for size in sizes)}"


def _errors(rows: pd.DataFrame) -> list[str]:
    pairs = zip(rows["max_abs_error"], rows["max_rel_error"], rows["output_error"], strict=True)
    return [_error(absolute, relative, error) for absolute, relative, error in pairs]


def _error(absolute: float, relative: float, error: float) -> str:
    known = [
        f"{name}={general(value, DIGITS)}" for name, value in (("a", absolute), ("r", relative)) if not is_null(value)
    ]
    if not known and not is_null(error):
        known = [f"e={general(error, DIGITS)}"]
    return f" | {' '.join(known)}" if known else ""
