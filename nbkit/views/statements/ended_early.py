"""What is said of two executions side by side of which one ended early: how far they correspond, and what comes next.

The rest is missing, so that nothing says whether the two agree.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.views.statements.statement import Words
from nbkit.views.summary.names import ROOT, shown

ALONE = {"left": "-", "right": "+"}


def ended_sides(meta: Mapping[str, Any]) -> list[str]:
    """Returns which sides of an alignment ended early: left, right."""
    return [side for side in ALONE if (meta.get(side) or {}).get("error")]


def ended_words(rows: pd.DataFrame, ended: list[str]) -> Iterator[Words]:
    """Yields up to where the sides correspond, and the first result behind that differs or that only one has."""
    is_op, is_same = rows["kind"].eq("op").fillna(False), rows["mark"].eq("=")
    sides = " and the ".join(ended)
    yield (f"It is not known whether the two agree, because the {sides} side ended early.",)
    agreeing = rows[is_op & is_same]
    if len(agreeing):
        row = agreeing.iloc[-1]
        yield (f"{units.counted(int(is_same.sum()), 'result')} of both agree, up to {_named(row, 'left')}.",)
    else:
        yield ("No result of an op corresponds to one of the other side.",)
    alone = rows["mark"].isin([ALONE[side] for side in ended]) & rows["relation"].isna()
    others = rows[is_op & (rows["mark"].eq("~") | alone)]
    if len(others):
        row = others.iloc[0]
        if row["mark"] == "~":
            yield (f"The first pair that differs, or of which no values are known, is {_named(row, 'left')}.",)
            return
        side, other = ("left", "right") if row["mark"] == "-" else ("right", "left")
        yield (f"The first result of the {side} side that the {other} one does not have is {_named(row, side)}.",)


def _named(row: "pd.Series[Any]", side: str) -> str:
    """Names the result of a row with its op, module and line on one side."""
    prefix = "" if side == "left" else "right_"
    name, op, module, source = (row[f"{prefix}{column}"] for column in ("name", "op", "module", "source"))
    where = [shown(str(op))] if isinstance(op, str) else []
    where += [f"in {shown(module) if module else ROOT}"] if isinstance(module, str) else []
    where += [shown(source)] if isinstance(source, str) else []
    return f"{shown(str(name))} ({', '.join(where)})" if where else shown(str(name))
