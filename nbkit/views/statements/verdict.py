"""Verdict: what a report says to the question whether anything is wrong, by verb."""

import pandas as pd

from nbkit.analysis.query.diff_table import worst_first
from nbkit.analysis.values.non_finite import NonFinite, non_finite
from nbkit.findings.finding import wrong
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.schema import DIFFS, FINDINGS, TENSORS
from nbkit.trace.trace import Trace
from nbkit.views.sections.audit import looked_at_text
from nbkit.views.sections.check import KINDS, has_steps, nothing_text
from nbkit.views.statements.statement import Link, Statement, Words, difference_link, op_link
from nbkit.views.summary import units
from nbkit.views.summary.names import shown, shown_module

QUESTION = "Is anything wrong"
WORST = 3
WHO_CHECKS = "opcheck looks for NaN and Inf, opdiff compares with a reference."


def values_verdict(trace: Trace) -> Statement:
    """Says for a verb that judges nothing where NaN and Inf were first seen, if values were read."""
    counts = non_finite(trace.frames.get("tensors", TENSORS.frame()))
    if not counts.looked_at:
        verb = shown(str(trace.meta.get("verb") or "this trace"))
        return _not_checked(f"{verb} does not check values; {WHO_CHECKS}")
    results = units.counted(counts.looked_at, "result")
    if not counts.nan_count and not counts.inf_count:
        return Statement(QUESTION, ((f"No NaN and no Inf in the {results} whose values were read.",),), "good")
    return Statement(QUESTION, tuple(_seen(trace, counts, results)), "bad" if counts.nan_count else "")


def _seen(trace: Trace, counts: NonFinite, results: str) -> list[Words]:
    kinds = (("NaN", counts.nan_count, counts.first_nan_op), ("Inf", counts.inf_count, counts.first_inf_op))
    return [
        (f"{units.count(number)} of {results} hold {name}, first that of ", *_op_words(trace, first), ".")
        for name, number, first in kinds
        if first is not None
    ]


def check_verdict(trace: Trace) -> Statement:
    """Says which bad op is the first and how many there are, else how many results were checked."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    looked = int(trace.meta.get("checked_tensors", 0))
    if len(findings):
        return Statement(QUESTION, tuple(_findings(trace, findings)), "bad")
    return Statement(QUESTION, ((nothing_text(trace),),), "good" if looked else "")


def _findings(trace: Trace, findings: pd.DataFrame) -> list[Words]:
    kind, op_id, message = (findings[name].iloc[0] for name in ("rule", "op_id", "message"))
    step = f" in step {findings['step'].iloc[0]}" if has_steps(trace) else ""
    begins = f"{KINDS.get(kind, shown(kind))}, first{step} at "
    first: Words = (begins, *_op_words(trace, int(op_id)), f": {shown(message)}")
    more = len(findings) - 1
    return [first, (Link(units.counted(more, "further finding"), "found"), " after it.")] if more else [first]


def audit_verdict(trace: Trace) -> Statement:
    """Says the worst finding and how many there are, else which parameters were looked at."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    is_bad = len(wrong(findings)) > 0
    if not len(findings):
        is_looked = len(trace.frames.get("parameters", ())) > 0
        return Statement(QUESTION, ((looked_at_text(trace),),), "good" if is_looked else "")
    severity, message, op_id = (findings[name].iloc[0] for name in ("severity", "message", "op_id"))
    line = () if pd.isna(op_id) else (" The op: ", *_op_words(trace, int(op_id)), ".")
    first: Words = (f"{shown(severity).capitalize()}: {shown(message, 500)}.", *line)
    more = len(findings) - 1
    rest: list[Words] = [(Link(units.counted(more, "further finding"), "found"), ".")] if more else []
    return Statement(QUESTION, (first, *rest), "bad" if is_bad else "")


def difference_verdict(trace: Trace) -> Statement:
    """Says how many tensors differ, the first and the worst of them, else how many were compared."""
    diffs = DIFFS.check(trace.frames.get("diffs", DIFFS.frame()))
    compared = int((diffs["status"] != "skipped").sum())
    if not compared:
        return _not_checked("no tensor was compared.")
    tensors, reference = units.counted(compared, "compared tensor"), shown(str(trace.meta.get("reference", "the CPU")))
    wrong = diffs.index[~diffs["status"].isin(HARMLESS)]
    if not len(wrong):
        text = f"Nothing wrong found: {tensors}, none further from {reference} than rounding allows."
        return Statement(QUESTION, ((text,),), "good")
    worst = worst_first(diffs)[: min(WORST, len(wrong))].tolist()
    words = [part for row in worst for part in ("; ", *_difference_words(diffs, row))][1:]
    differ = f"{units.count(len(wrong))} of {tensors} differ from {reference} by more than rounding allows"
    has_failed = bool((diffs["status"].iloc[wrong] == "failed").any())
    sentences: tuple[Words, ...] = (
        (f"{differ}{', or could not be compared' if has_failed else ''}.",),
        ("First in the step: ", *_difference_words(diffs, int(wrong[0])), "."),
        ("Worst: ", *words, "."),
    )
    return Statement(QUESTION, sentences, "bad")


def _difference_words(diffs: pd.DataFrame, row: int) -> Words:
    op, status, noise_ratio = (diffs[name].iloc[row] for name in ("op", "status", "noise_ratio"))
    ratio = "" if pd.isna(noise_ratio) else f", noise ratio {units.general(noise_ratio, 3)}"
    return difference_link(shown(op), row), f" {_location(diffs, row)} ({shown(status)}{ratio})"


def _op_words(trace: Trace, op_id: int) -> Words:
    """Words an op as a link, with where it is."""
    source = trace.ops["source"].iloc[op_id]
    line = f" ({shown(source)})" if isinstance(source, str) else ""
    return op_link(shown(trace.ops["op"].iloc[op_id]), op_id), f" {_location(trace.ops, op_id)}{line}"


def _location(frame: pd.DataFrame, row: int) -> str:
    """Says where a row is: its module and phase."""
    module, phase = frame["module"].iloc[row], frame["phase"].iloc[row]
    where = f"in {shown_module(None, module)}" if isinstance(module, str) else "outside modules"
    return f"{where}, {shown(phase)}"


def _not_checked(reason: str) -> Statement:
    return Statement(QUESTION, ((f"Not checked: {reason}",),))
