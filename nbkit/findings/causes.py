"""Links findings to their causes: one NaN makes the loss, its gradients and later all parameters NaN."""

import json
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

import pandas as pd

from nbkit.findings.finding import WRONG
from nbkit.schema import FINDINGS
from nbkit.trace.trace import Trace

FOLLOWS, SAME_LINE, SAME_OP = "follows", "same_line", "same_op"
# Where values go wrong by themselves, and what tells only that they are wrong.
ORIGINS = ("nan", "inf", "overflow")
OF_STEP = ("loss_not_finite", "gradient_not_finite")
SYMPTOMS = (*OF_STEP, "non_finite_gradient", "skipped_step")
# Each of them stands for calls of one op at many lines already.
OF_OP = ("mismatch", "shape", "dtype", "failed")


class Row(NamedTuple):
    """Holds what tells whether a finding follows from another one; `at` is its place in the frame."""

    at: int
    rule: str
    severity: str
    step: int
    phase: str | None
    source: str | None
    op: str | None
    module: str | None
    parameter: str | None
    is_costly: bool
    evidence: dict[str, Any]

    @property
    def recording(self) -> object:
        return self.evidence.get("recording")


def causes_in(trace: Trace) -> pd.DataFrame:
    """Returns the causes among the findings of a trace."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    return findings[causes_of(findings)["cause"].isna().to_numpy()]


def causes_of(findings: pd.DataFrame) -> pd.DataFrame:
    """Returns a row per finding, in the same order: `cause`, the place of the finding that it goes back to, null for
    a cause itself; and `relation`: "follows" from it, "same_line" of code in another module, or "same_op" elsewhere.

    A cause has no cause. Findings of one recording, or of the steps of one script, are linked by what they tell: the
    step, the line, the op; see `RELATIONS`.
    """
    rows = _rows(findings)
    parents = [_parent(rows, row) for row in rows]
    causes: list[int | None] = []
    relations: list[str | None] = []
    for parent in parents:
        cause, relation = parent
        seen = {cause}
        while cause is not None and (further := parents[cause])[0] not in (None, *seen):
            cause, relation = further[0], FOLLOWS if FOLLOWS in (relation, further[1]) else relation
            seen.add(cause)
        causes.append(cause)
        relations.append(relation)
    columns = {"cause": pd.array(causes, "Int64"), "relation": pd.array(relations, object)}
    return pd.DataFrame(columns, index=findings.index)


def _rows(findings: pd.DataFrame) -> list[Row]:
    names = ("rule", "severity", "step", "phase", "source", "op", "module", "parameter")
    columns = [[value if isinstance(value, str | int) else None for value in findings[name]] for name in names]
    is_costly = findings[["effect_us", "effect_bytes"]].notna().any(axis=1)
    evidence = [read_evidence(text) for text in findings["evidence"]]
    return [Row(at, *row) for at, row in enumerate(zip(*columns, is_costly, evidence, strict=True))]


def read_evidence(text: object) -> dict[str, Any]:
    """Returns the evidence of a finding; empty where it cannot be read."""
    try:
        read = json.loads(str(text))
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _parent(rows: Sequence[Row], row: Row) -> tuple[int | None, str | None]:
    for relation, finds in RELATIONS:
        cause = finds(rows, row)
        if cause is not None and cause.at != row.at:
            return cause.at, relation
    return None, None


def _made_of(rows: Sequence[Row], row: Row) -> Row | None:
    """Returns the op whose Inf this one computed with."""
    op_id = row.evidence.get("follows_from")
    origins = (one for one in rows if one.rule in ORIGINS and one.recording == row.recording)
    return None if op_id is None else next((one for one in origins if op_id in _op_ids(one)), None)


def _op_ids(row: Row) -> list[int]:
    op_ids = row.evidence.get("op_ids")
    return op_ids if isinstance(op_ids, list) else []


def _forward_op(rows: Sequence[Row], row: Row) -> Row | None:
    """Returns what went wrong in the forward pass at the line whose gradient goes wrong."""
    if row.rule not in ORIGINS or row.phase != "backward" or row.source is None:
        return None
    here = (row.recording, row.step, row.source)
    origins = (one for one in rows if one.rule in ORIGINS and one.phase != "backward")
    found = next((one for one in origins if (one.recording, one.step, one.source) == here), None)
    # A later forward pass at the line may itself compute with what this one made.
    return found if found is not None and found.at < row.at else None


def _origin(rows: Sequence[Row], row: Row) -> Row | None:
    """Returns where the NaN began that a loss or gradients show; else what came in with it."""
    if row.rule not in SYMPTOMS or row.severity not in WRONG:
        return None
    for rules in (ORIGINS, ("input",)):
        known = [one for one in rows if one.rule in rules]
        if row.rule in OF_STEP:
            is_loss = row.rule == OF_STEP[0]
            here = (one for one in known if one.step == row.step)
            found = next((one for one in here if not (is_loss and one.phase in ("backward", "optimizer"))), None)
        else:  # without an op it stands at the first step of its recording
            found = next((one for one in known if one.recording == row.recording), None)
        if found is not None:
            return found
    return None


def _latest(rows: Sequence[Row], until: int) -> Row | None:
    """Returns the first finding of the latest step up to `until`."""
    steps = [row.step for row in rows if row.step <= until]
    return next((row for row in rows if steps and row.step == max(steps)), None)


def _earlier_step(rows: Sequence[Row], row: Row) -> Row | None:
    """Returns what made a parameter, a gradient or a state NaN before the step that reads it."""
    if not _is_state(row):
        return None
    for rules in (OF_STEP, ORIGINS):
        if found := _latest([one for one in rows if one.rule in rules], row.step - 1):
            return found
    here = (row.recording, row.step)
    return next((one for one in rows if _is_state(one) and (one.recording, one.step) == here), None)


def _is_state(row: Row) -> bool:
    """Returns whether what came in with NaN is what training has made: a batch is not."""
    return row.rule == "input" and (row.parameter is not None or row.phase in ("backward", "optimizer"))


def _batch(rows: Sequence[Row], row: Row) -> Row | None:
    """Returns the batch behind a loss that jumps, or the other tensor of that batch that is unusual."""
    of = [one for one in rows if one.rule == "unusual_batch" and one.step == row.step]
    if row.rule in ("loss_spike", *OF_STEP):
        return of[0] if of else None
    samples = [one for one in of if one.evidence.get("rows") == row.evidence.get("rows")]
    return samples[0] if row.rule == "unusual_batch" and samples else None


def _underflow(rows: Sequence[Row], row: Row) -> Row | None:
    """Returns the op of the backward pass that loses the gradients which are 0."""
    if row.rule != "zero_gradient" or row.severity not in WRONG:
        return None
    lost = (one for one in rows if one.rule == "underflow" and one.phase == "backward")
    return next((one for one in lost if one.recording == row.recording), None)


def _same_op(rows: Sequence[Row], row: Row) -> Row | None:
    """Returns the worst of the findings of opdiff about one op."""
    if "of_op" not in row.evidence:
        return None
    alike = [one for one in rows if "of_op" in one.evidence and (one.op, one.recording) == (row.op, row.recording)]
    return max(alike, key=lambda one: float(one.evidence.get("noise_ratio", inf)))


def _same_line(rows: Sequence[Row], row: Row) -> Row | None:
    if row.source is None or row.parameter is not None or row.is_costly or row.rule in OF_OP:
        return None
    return next((one for one in rows if _place(one) == _place(row) and not one.is_costly), None)


def _place(row: Row) -> tuple[object, ...]:
    names = (row.rule, row.severity, row.recording, row.step, row.phase)
    return (*names, row.source, row.op, row.parameter)


Relation = Callable[[Sequence[Row], Row], Row | None]
RELATIONS: tuple[tuple[str, Relation], ...] = (
    (FOLLOWS, _made_of),
    (FOLLOWS, _forward_op),
    (FOLLOWS, _origin),
    (FOLLOWS, _earlier_step),
    (FOLLOWS, _batch),
    (FOLLOWS, _underflow),
    (SAME_OP, _same_op),
    (SAME_LINE, _same_line),
)
