"""What a brief and a report say of a step beside a run that was recorded before: do they agree, and if not, where."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.schema import ALIGNMENT
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Link, Statement, Tone, Words, op_link
from nbkit.views.summary.names import shown, shown_module

QUESTION = "Does it agree with the other run"
VERB = "opdiff"
LONGEST = 500
DIFFER = ("local", "input", "both", "propagated")


def against_statements(trace: Trace) -> list[Statement]:
    """Returns the statement for the first screen of a report; none without another run."""
    words = against_words(trace)
    return [Statement(QUESTION, tuple(words), against_tone(trace))] if words else []


def against_words(trace: Trace) -> list[Words]:
    """Returns the sentences of a brief; none for steps that were compared with no recorded run."""
    if not _is_compared(trace):
        return []
    rows, other = _rows(trace), shown(str(trace.meta.get("against")))
    first = trace.meta.get("first_divergence")
    return [*(_differing(rows, first, other) if first else _agreeing(rows, other))]


def against_tone(trace: Trace) -> Tone:
    """Returns whether the step agrees with the other run; nothing where it was compared with none, or shares no op."""
    if not _is_compared(trace):
        return ""
    if trace.meta.get("first_divergence"):
        return "bad"
    return "good" if (_rows(trace)["error_class"] == "clean").any() else ""


def _is_compared(trace: Trace) -> bool:
    return trace.meta.get("verb") == VERB and "alignment" in trace.frames


def _rows(trace: Trace) -> pd.DataFrame:
    return ALIGNMENT.check(trace.frames["alignment"])


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
