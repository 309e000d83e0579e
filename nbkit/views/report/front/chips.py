"""Words the verdict of each trace in a few words, for the first screen of a report."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from nbkit import units
from nbkit.analysis.values.non_finite import non_finite
from nbkit.findings.causes import causes_of
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.schema import DIFFS, FINDINGS, PARAMETERS, TENSORS
from nbkit.trace.trace import Trace
from nbkit.views.report.chapter import Chapter
from nbkit.views.statements.statement import Tone

# What opcheck's rules find, in the words of a chip.
KINDS = {
    "nan": "NaN begins in {}",
    "inf": "Inf begins in {}",
    "underflow": "values underflow in {}",
    "saturated": "values do not fit in {}",
    "input": "NaN or Inf comes in at {}",
}


@dataclass(frozen=True)
class Chip:
    """A verdict in a few words, and whether it is bad or good; it leads to the section of its trace."""

    text: str
    tone: Tone


def chips_of(chapter: Chapter) -> list[Chip]:
    """Returns the verdicts of a trace: whether it is whole, its values, differences, training, and time to be saved."""
    trace = chapter.contents.trace
    chips = [] if trace.complete else [Chip("incomplete", "bad")]
    return [*chips, *_values(trace), *_differences(trace), *_training(trace), *_time(trace)]


def _values(trace: Trace) -> Iterator[Chip]:
    checked = int(trace.meta.get("checked_tensors", 0))
    if checked:
        findings = _findings(trace)
        is_rule = [(text, findings["rule"] == rule) for rule, text in KINDS.items()]
        found = [(text, findings[of]) for text, of in is_rule if of.any()]
        for text, rows in found:
            # A hint, such as what overflows under a GradScaler, is nothing wrong.
            is_bad = (rows["severity"] != "hint").any()
            yield Chip(text.format(units.counted(len(rows), "op")), "bad" if is_bad else "")
        if not found:
            yield Chip(f"no NaN or Inf begins in {units.counted(checked, 'result')}", "good")
        return
    counts = non_finite(trace.frames.get("tensors", TENSORS.frame()))
    results = units.counted(counts.looked_at, "result")
    if counts.nan_count:
        yield Chip(f"NaN in {units.count(counts.nan_count)} of {results}", "bad")
    if counts.inf_count:
        yield Chip(f"Inf in {units.count(counts.inf_count)} of {results}", "")


def _differences(trace: Trace) -> Iterator[Chip]:
    diffs = DIFFS.check(trace.frames.get("diffs", DIFFS.frame()))
    compared = diffs[diffs["status"] != "skipped"]
    if len(compared):
        wrong = int((~compared["status"].isin(HARMLESS)).sum())
        noun = "mismatch" if wrong == 1 else "mismatches"
        text = f"{units.count(wrong)} {noun} in {units.counted(len(compared), 'tensor')}"
        yield Chip(text, "bad" if wrong else "good")


def _training(trace: Trace) -> Iterator[Chip]:
    parameters = PARAMETERS.check(trace.frames.get("parameters", PARAMETERS.frame()))
    if not len(parameters):
        return
    severities = _findings(trace)["severity"].value_counts()
    counts = [(name, int(severities.get(name, 0))) for name in ("error", "warning")]
    bad = ", ".join(units.counted(number, name) for name, number in counts if number)
    whole = units.counted(
        int(((parameters["kind"] == "parameter") & parameters["tied_with"].isna()).sum()), "parameter"
    )
    yield Chip(f"{bad} in training" if bad else f"no error or warning in {whole}", "bad" if bad else "good")


def _time(trace: Trace) -> Iterator[Chip]:
    if trace.meta.get("verb") == "optime" and (hints := len(_findings(trace))):
        yield Chip(f"{units.counted(hints, 'hint')} at time or memory to save", "")


def _findings(trace: Trace) -> pd.DataFrame:
    """Returns the causes among the findings."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    return findings[causes_of(findings)["cause"].isna().to_numpy()]
