"""Makes frames of timed steps for the rules: ops one after the other below one step."""

from typing import Any

import pandas as pd

from nbkit.findings.time.cases import Measure
from nbkit.findings.time.rules import time_findings
from nbkit.schema import LINES
from tests.support.fakes import make_ops

Row = dict[str, Any]


def frames(*rows: Row, whole_us: float = 10_000.0) -> dict[str, pd.DataFrame]:
    """Returns `ops` and `lines` of a step of `whole_us`, whose first row is the step; each row begins as one ends.

    `parent_id` 0 is the step. `gap_us` is the time before a row.
    """
    filled, time_us = [], 0.0
    for row in rows:
        rest = {name: value for name, value in row.items() if name != "gap_us"}
        time_us += row.get("gap_us", 0.0)
        filled.append({"parent_id": 0, "start_us": time_us, "source": "train.py:7", **rest})
        if rest.get("parent_id", 0) == 0:
            time_us += row.get("total_time_us", 1.0)
    step = {"level": "range", "op": "step", "phase": "other", "start_us": 0.0, "total_time_us": whole_us}
    return {"ops": make_ops(step, *filled), "lines": LINES.frame({"source": ["train.py:7"], "text": ["y = fc(x)"]})}


def found(
    *rows: Row, whole_us: float = 10_000.0, measure: Measure | None = None, is_slowed: bool = False
) -> list[tuple[str, str]]:
    """Returns rule and message of each finding of such a step; what passes after its last row is no matter."""
    table = time_findings(frames(*rows, whole_us=whole_us), measure, is_slowed=is_slowed)
    pairs = zip(table["rule"].tolist(), table["message"].tolist(), strict=True)
    return [(rule, message) for rule, message in pairs if "no op ran: after the last op" not in message]
