"""The alignment as text: a line for each pair, its mark, both sides in columns, and their difference."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from nbkit.errors import OptionError
from nbkit.schema import RESULTS
from nbkit.step.decode import shape_of
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.units import general, is_null
from nbkit.views.alignment.verdicts import SIDES, results_of, rows_of
from nbkit.views.sections.writers import without_middle
from nbkit.views.summary.names import short_op, shown

PREFIXES = {"left": "", "right": "right_"}
# Characters that op and name keep, however narrow their side is.
FEWEST_OP, FEWEST_NAME = 8, 20
DIGITS = 5
Texts = Sequence[str]


def side_by_side_text(trace: Trace, column_size: int = 60) -> str:
    """Returns a line per row of `alignment`: `012 ~ | RESULT float32 2:2x64 Softmax attn | ... | a=1e-05 r=3e-04`.

    The mark is `=` where both agree, `~` where they differ, `-` and `+` for a result of the left and right side alone.

    A side has kind, dtype, rank and sizes, op and name, and is blank where it has no such result; without an op the
    name has its room. Columns are as wide as what they hold; where they take more than `column_size` characters
    together, names and ops lose their middle. `a` and `r` are the largest absolute and relative error; where they are
    not known, `e` is that of the whole result. Raises OptionError for a trace that is not of opalign.
    """
    if "alignment" not in checked_trace(trace).frames:
        raise OptionError(
            f"This is a trace of {trace.meta.get('verb')}, which has no two sides; give one that nbkit.opalign returns."
        )
    rows = rows_of(trace)
    if not len(rows):
        return "No results."
    sides = [_side(trace, rows, side, column_size) for side in SIDES]
    digits = max(len(str(len(rows) - 1)), 3)
    lines = zip(rows["mark"].fillna("?"), *sides, _errors(rows), strict=True)
    return "\n".join(
        f"{number:0{digits}d} {mark} | {left} | {right}{error}".rstrip()
        for number, (mark, left, right, error) in enumerate(lines)
    )


def _side(trace: Trace, rows: pd.DataFrame, side: str, size: int) -> list[str]:
    """Returns the text of one side of each row, all of one width."""
    ids, prefix = rows[f"{side}_id"], PREFIXES[side]
    is_there = ids.notna().tolist()
    facts = [
        _blank(column, is_there)
        for column in (_kinds(trace, rows, ids), _texts(rows[f"{prefix}dtype"]), _shapes(rows[f"{prefix}shape"]))
    ]
    ops = _blank([short_op(op) for op in _texts(rows[f"{prefix}op"])], is_there)
    names = _blank(_texts(rows[f"{prefix}name"]), is_there)
    before = [f"{' '.join(row)} " for row in zip(*map(_padded, facts), strict=True)]
    op_width, name_width = _widths(ops, names, size - len(before[0]))
    return [
        head + _op_and_name(op, name, op_width, name_width) for head, op, name in zip(before, ops, names, strict=True)
    ]


def _kinds(trace: Trace, rows: pd.DataFrame, ids: pd.Series) -> Texts:
    """Returns what each result is; those that the model returns are its outputs."""
    results = results_of(trace)
    outputs = set(RESULTS.check(results).loc[results["is_output"], "result_id"].tolist())
    kinds = rows["kind"].astype(object).where(rows["kind"].notna(), "op")
    words = ("RESULT" if kind == "op" else str(kind).upper() for kind in kinds)
    return ["OUTPUT" if one in outputs else word for one, word in zip(ids.fillna(-1).tolist(), words, strict=True)]


def _widths(ops: Texts, names: Texts, room: int) -> tuple[int, int]:
    """Returns how wide op and name are: as the longest, but the wider one first gives way where there is no room."""
    op, name = (max(map(len, texts)) for texts in (ops, names))
    # A name without an op may use the room of both.
    name = max((len(text) for text, before in zip(names, ops, strict=True) if before), default=name)
    while op + 1 + name > room and (op > FEWEST_OP or name > FEWEST_NAME):
        if name > FEWEST_NAME and (name >= op or op <= FEWEST_OP):
            name -= 1
        else:
            op -= 1
    return op, name


def _op_and_name(op: str, name: str, op_width: int, name_width: int) -> str:
    whole = op_width + 1 + name_width if op_width else name_width
    if not op:
        return without_middle(name, whole).ljust(whole)
    return f"{without_middle(op, op_width).ljust(op_width)} {without_middle(name, name_width).ljust(name_width)}"


def _blank(texts: Texts, is_there: Sequence[bool]) -> list[str]:
    return [text if there else "" for text, there in zip(texts, is_there, strict=True)]


def _padded(texts: Texts) -> list[str]:
    width = max(map(len, texts))
    return [text.ljust(width) for text in texts]


def _texts(values: pd.Series) -> Texts:
    return [shown(text) if isinstance(text, str) else "" for text in values.astype(object)]


def _shapes(values: pd.Series) -> Texts:
    known = {text: _shape(shape_of(text)) for text in values.dropna().unique()}
    return [known.get(text, "") for text in values.astype(object)]


def _shape(sizes: Sequence[int | None]) -> str:
    """Formats sizes with their rank before them: `2:4x64`, of a scalar `0:`."""
    return f"{len(sizes)}:{'x'.join('?' if size is None else str(size) for size in sizes)}"


def _errors(rows: pd.DataFrame) -> Texts:
    values: Any = zip(rows["max_abs_error"], rows["max_rel_error"], rows["output_error"], strict=True)
    return [_error(*errors) for errors in values]


def _error(absolute: float, relative: float, error: float) -> str:
    known = {"a": absolute, "r": relative}
    if is_null(absolute) and is_null(relative):
        known = {"e": error}
    parts = [f"{name}={general(value, DIGITS)}" for name, value in known.items() if not is_null(value)]
    return f" | {' '.join(parts)}" if parts else ""
