"""What a brief and a report say of a step beside a run that was recorded before: do they agree, and if not, where."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.schema import ALIGNMENT
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Link, Statement, Words, op_link
from nbkit.views.summary.names import shown, shown_module

QUESTION = "Does it agree with the other run"
LONGEST = 500
DIFFER = ("local", "input", "both", "propagated")


def against_statements(trace: Trace) -> list[Statement]:
    """Says whether the step agrees with the other run: neither bad nor good if they share no op."""
    if trace.meta.get("verb") != "opdiff" or "alignment" not in trace.frames:
        return []
    rows, other = ALIGNMENT.check(trace.frames["alignment"]), shown(str(trace.meta.get("against")))
    if first := trace.meta.get("first_divergence"):
        return [Statement(QUESTION, tuple(_differing(rows, first, other)), "bad", is_first=True)]
    is_good = (rows["error_class"] == "clean").any()
    return [Statement(QUESTION, tuple(_agreeing(rows, other)), "good" if is_good else "", is_first=True)]


def _agreeing(rows: pd.DataFrame, other: str) -> Iterator[Words]:
    same = int((rows["error_class"] == "clean").sum())
    if not same:
        yield (f"Nothing of the step was compared with {other}: no op of one has results that are known in both.",)
        return
    yield (f"The step agrees with {other}: no value differs beyond rounding in {units.counted(same, 'op')} of both.",)
    yield from _alone(rows, other)


def _differing(rows: pd.DataFrame, first: Mapping[str, Any], other: str) -> Iterator[Words]:
    message = shown(str(first.get("message") or ""), LONGEST).removesuffix(".")
    yield (f"The step differs from {other}, first at ", *_place(first), f": {message}." if message else ".")
    sides = f"Left is the step, right is {other}" if "the right" in message or "the left" in message else ""
    # Else the message says it.
    how_far: Any = first.get("output_error") if first.get("error_class") == "input" else None
    far = "" if units.is_null(how_far) else f"Its result differs by {units.general(float(how_far), 3)} there"
    classes = rows["error_class"][rows["action"] == "match"]
    differ, known = int(classes.isin(DIFFER).sum()), int(classes.notna().sum())
    whole = f"Results of {units.count(differ)} of {units.counted(known, 'op')} in both differ"
    yield (f"{'. '.join(filter(None, (sides, far, whole)))}.",)


def _place(first: Mapping[str, Any]) -> Iterator[str | Link]:
    """Words the op at which the two part: a link if the step has it, then module, phase and line."""
    name = shown(str(first.get("op")))
    yield name if first.get("op_id") is None else op_link(name, int(first["op_id"]))
    module = first.get("module")
    where = f"in {shown_module(None, module)}" if isinstance(module, str) else "outside modules"
    yield f" {where}, {shown(str(first.get('phase')))}"
    if isinstance(first.get("source"), str):
        yield f" ({shown(first['source'])})"


def _alone(rows: pd.DataFrame, other: str) -> Iterator[Words]:
    counts = rows["action"].value_counts()
    mine, theirs = (int(counts.get(name, 0)) for name in ("left_only", "right_only"))
    if mine or theirs:
        yield (f"It has {units.counted(mine, 'op')} that {other} has not, and lacks {units.count(theirs)} of it.",)
