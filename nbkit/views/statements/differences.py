"""Says how far results of a step are from a reference, as opdiff and opreplay compare them."""

from collections.abc import Iterator

import pandas as pd

from nbkit import units
from nbkit.divergence.milestones import off_without_fault
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.schema import DIFFS
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Chip, Statement, no_fault
from nbkit.views.summary.counting import recorded_too
from nbkit.views.summary.names import shown

LONGEST = 300


def _compared(trace: Trace) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the rows of what was compared, and those of them that are wrong."""
    diffs = DIFFS.check(trace.frames.get("diffs", DIFFS.frame()))
    compared = diffs[diffs["status"] != "skipped"]
    return compared, compared[~compared["status"].isin(HARMLESS)]


def difference_statements(trace: Trace) -> list[Statement] | None:
    """Says how far results are from the reference; null where none was compared."""
    compared, wrong = _compared(trace)
    if len(compared):
        return no_fault(_verdict(trace, compared, wrong))
    return no_fault() if "opdiff" in recorded_too(trace) else None


def _verdict(trace: Trace, compared: pd.DataFrame, wrong: pd.DataFrame) -> str:
    tensors, reference = units.counted(len(compared), "compared tensor"), shown(str(trace.meta.get("reference", "cpu")))
    if trace.meta.get("reference") == "captured bits":
        same = len(compared) - len(wrong)
        return f"{tensors}: {units.out_of(same, len(compared))} with the captured bits, form and memory."
    if not len(wrong):
        text = f"{tensors}: {_precise(compared, reference)}{_nans(compared, reference)}"
        off = off_without_fault(trace.meta)
        against = shown(str(trace.meta.get("against")))
        return (
            text if off is None else f"{text} No op is at fault, but results are off from {against} by up to {off:.3g}."
        )
    failed = ", or could not be compared" if (wrong["status"] == "failed").any() else ""
    differ = "differs" if len(wrong) == 1 else "differ"
    return f"{units.count(len(wrong))} of {tensors} {differ} from {reference} by more than rounding allows{failed}."


def _nans(compared: pd.DataFrame, reference: str) -> str:
    """Says how many results are NaN on both sides, of which a comparison tells nothing."""
    nans = int((compared["actual_nan_count"].fillna(0) > 0).sum())
    hold = "1 of them holds" if nans == 1 else f"{units.count(nans)} of them hold"
    return f" {hold} NaN, as on {reference}: opcheck finds where it begins." if nans else ""


def _precise(compared: pd.DataFrame, reference: str) -> str:
    """Says how near right results are to the reference: those of fewer bits than their dtype has are told apart."""
    reduced = compared[compared["status"] == "reduced"]
    if reduced.empty:
        return f"none is further from {reference} than rounding allows."
    worst = reduced.iloc[int(reduced["noise_ratio"].fillna(0).to_numpy().argmax())]
    others = f" and {units.counted(len(reduced) - 1, 'other')}" if len(reduced) > 1 else ""
    have = "result has" if len(reduced) == 1 else "results have"
    near = units.count(len(compared) - len(reduced))
    why = f": {shown(worst['message'], LONGEST)}" if isinstance(worst["message"], str) else ""
    return (
        f"{near} are as near to {reference} as rounding allows. {units.count(len(reduced))} {have} less precision than "
        f"the dtype (reduced): {shown(str(worst['op']))}, {worst['noise_ratio']:.3g}x the rounding error{others}; not "
        f"counted as an error{why}."
    )


def difference_chips(trace: Trace) -> Iterator[Chip]:
    """Yields how many results are wrong."""
    compared, wrong = _compared(trace)
    if len(compared):
        noun = "mismatch" if len(wrong) == 1 else "mismatches"
        text = f"{units.count(len(wrong))} {noun} in {units.counted(len(compared), 'tensor')}"
        yield Chip(text, "bad" if len(wrong) else "good")
