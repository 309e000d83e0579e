"""Makes findings of opbisect and opstable: calls whose replacement repairs a step, or that give other results."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from nbkit.findings.finding import PLACE, Finding, Severity, at_ops, findings_frame, rule

REPLACED = (
    "Run the op alone, with the inputs it has here, on the device and on the CPU. To go on meanwhile, keep this call "
    "replaced in the step, as opfallback does for an op on the CPU."
)
NONE_ADVICE = (
    "Look at what was not replaced: trace.meta['skipped'] counts it by reason; widen the filters of opbisect, or "
    "replace otherwise with by=."
)


@rule("error", verbs=("opbisect",), names=("culprit",))
def at_fault(
    calls: Sequence[Mapping[str, Any]], ops: pd.DataFrame, texts: Mapping[str, str], ran: str
) -> Iterator[Finding]:
    """The step passes its check with this call replaced, on the CPU say, and fails without.

    Each call is given by op, module, phase, call, source and op_id (null if it has no row); `ran` says where, or how,
    it ran when the step passed.
    """
    for call in calls:
        message = f"call {call['call']} of the op is at fault: with it {ran} the step passes, without it fails"
        place = {name: call[name] for name in ("op", "module", "phase", "source")}
        finding = at_fault.finding(message, REPLACED, **place, evidence={"call": call["call"]})
        yield finding if call["op_id"] is None else at_ops(finding, ops, [call["op_id"]], texts)


@rule("warning", "hint", verbs=("opbisect",))
def no_culprit(verdict: str, *, passes: bool) -> list[Finding]:
    """No set of calls repairs the step; a hint where it passes as it is."""
    if passes:
        return [no_culprit.finding(verdict, "Give a step for which the check fails.", severity="hint")]
    return [no_culprit.finding(verdict, NONE_ADVICE, severity="warning")]


ADVICE = {
    "error": "Run the op alone, from the same inputs, several times; if it differs there, too, its kernel adds up in "
    "no fixed order, or reads memory that nobody has written.",
    "warning": "torch.use_deterministic_algorithms(True) chooses another kernel where there is one, and raises where "
    "there is none.",
}
FIX = "One of the two ways that it computes is wrong: run it in both by hand, keep to the right one, and report it."


def stability_findings(stability: pd.DataFrame, ops: pd.DataFrame, texts: Mapping[str, str]) -> pd.DataFrame:
    """Returns a finding for each op, line and module whose calls differ from run to run, or by more than rounding."""
    rules = (other_values, not_repeatable)
    return findings_frame(finding for rule in rules for finding in rule(stability, ops, texts))


@rule("error", "warning", verbs=("opstable",))
def not_repeatable(stability: pd.DataFrame, ops: pd.DataFrame, texts: Mapping[str, str]) -> Iterator[Finding]:
    """An op gives other bits from the same inputs each time; a warning where torch documents it as nondeterministic."""
    for alike, worst in _by_place(stability[stability["run_to_run"] == "differs"]):
        severity: Severity = "warning" if isinstance(worst["documented"], str) else "error"
        how_far = str(worst["message"]).partition(": ")[2]  # behind which check it was
        message, evidence = f"the same inputs give other bits each time: {how_far}", {"max_ulp": worst["max_ulp"]}
        finding = not_repeatable.finding(message, ADVICE[severity], severity=severity, evidence=evidence)
        yield at_ops(finding, ops, alike["op_id"].tolist(), texts)


@rule("error", verbs=("opstable",))
def other_values(stability: pd.DataFrame, ops: pd.DataFrame, texts: Mapping[str, str]) -> Iterator[Finding]:
    """A call gives other values in another batch, layout or number of threads: an element is off by 1 % or more, a run
    in float64 agrees with one side within 1,000 times its rounding, and not with the other.
    """
    for alike, worst in _by_place(stability[stability["beyond_rounding"].notna()]):
        message = f"the same numbers give other values {worst['beyond_rounding']}"
        evidence = {"max_ulp": worst["max_ulp"]}
        yield at_ops(other_values.finding(message, FIX, evidence=evidence), ops, alike["op_id"].tolist(), texts)


def _by_place(rows: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, pd.Series]]:
    """Yields the rows of each op, line and module, and the worst of them."""
    for _, alike in rows.groupby([*PLACE], sort=False, dropna=False):
        yield alike, alike.iloc[int(alike["max_ulp"].to_numpy().argmax())]
