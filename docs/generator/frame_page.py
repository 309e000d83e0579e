"""The page of a frame: a row per what, its columns, which verbs fill it, and a few rows that an example made."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from docs.generator.examples import Example
from docs.generator.markdown import code, page, table
from docs.generator.public import public_names
from nbkit.magics import CELL_MAGICS, LINE_MAGICS
from nbkit.schema import Column, Table

UNITS = {"_us": "microseconds", "_bytes": "bytes", "_fraction": "share, 0 to 1"}
# What differs from run to run, beside times: memory of the process, and what is measured where there is time.
VARYING = {
    "steps": ("held_bytes", "process_bytes", "update_fraction"),
    # Known where the process was still waiting when it asked.
    "collectives": ("duration_us", "wait_us", "state"),
    # Bits are those of the machine's kernels.
    "stability": (
        "batch_invariant",
        "thread_invariant",
        "stride_invariant",
        "max_ulp",
        "max_difference_fraction",
        "message",
    ),
    "casts": ("error", "own_error", "collapsed_fraction", "loss_change"),
}
RULES = """\
Missing is null, never -1, 0 or an empty text; a column of int64 or bool has no null. The frame has a RangeIndex and
exactly these columns in this order; `{name}` in [nbkit/schema](../../../nbkit/schema) builds and checks it."""


def frame_page(of: Table, fillers: list[Example], docs: Path) -> str:
    """Returns the page as Markdown."""
    links = ", ".join(_link(example, docs) for example in fillers)
    return page(
        f"# {of.name}",
        f"One row per {of.row}. Filled by {links}.",
        "## Columns",
        RULES.format(name=of.name.upper()),
        columns_table(of),
        "## Example",
        f"Some rows of the example of {_link(fillers[0], docs)}, one beside the other; `...` is what differs from"
        " run to run, such as a time.",
        _rows(fillers[0].frames[of.name], VARYING.get(of.name, ())),
    )


def columns_table(of: Table) -> str:
    """Returns its columns, a row each."""
    return table(["column", "dtype", "null", "unit", "meaning"], [_row(column) for column in of.columns])


def unit(column: Column) -> str:
    """Returns the unit that the name of a column ends in; nothing for counts and texts."""
    return next((text for suffix, text in UNITS.items() if column.name.endswith(suffix)), "")


def _row(column: Column) -> list[str]:
    null = "no" if column.dtype in ("int64", "bool") else "yes"
    return [code(column.name), column.dtype, null, unit(column), column.meaning]


def _link(example: Example, docs: Path) -> str:
    if example.name in CELL_MAGICS or example.name in LINE_MAGICS:
        return f"[{example.name}](../../verbs/{example.name}.md)"
    if example.name in public_names():
        return f"[{example.name}](../../functions.md#{example.name.lower()})"
    title = (docs / "guides" / f"{example.name}.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return f"[{title[0].lower()}{title[1:]}](../../guides/{example.name}.md)"


def _rows(df: pd.DataFrame, varying: Sequence[str]) -> str:
    last = len(df) - 1
    shown = df.iloc[sorted({0, last // 2, last} if len(df) else ())]
    heads = ["column", *(f"row {index}" for index in shown.index)]
    return table(heads, [[code(name), *(_text(name, value, varying) for value in shown[name])] for name in df.columns])


def _text(name: str, value: object, varying: Sequence[str]) -> str:
    if name in varying:
        return "..."
    if pd.isna(value):  # type: ignore[call-overload]
        return "null"
    if name.endswith(("_us", "_per_s")):
        return "..."
    if isinstance(value, str):
        return code(value) if value else "empty text"
    return format(value, ".4g") if isinstance(value, float) else str(value)
