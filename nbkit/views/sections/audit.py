"""Sections of an opaudit trace: the findings, and what was looked at."""

import pandas as pd

from nbkit.schema import PARAMETERS
from nbkit.trace.trace import Trace
from nbkit.views.sections.findings import findings_sections
from nbkit.views.sections.section import Column, Section, columns
from nbkit.views.summary import units
from nbkit.views.summary.names import shown

COUNTS = columns("parameters, frozen, with gradient, in an optimizer, moved", "count")
NOT_AUDITED = "Not audited: no module ran in the recording, so that there is no parameter to look at."


def audit_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the findings, and how many parameters of each model were looked at."""
    findings = findings_sections(trace, count, looked_at_text(trace))
    models = _by_model(trace)
    if not models:
        return findings
    rows = [[model, *_counts(of)] for model, of in models[:count]]
    return [*findings, Section("What was looked at", (Column("model"), *COUNTS), rows)]


def looked_at_text(trace: Trace) -> str:
    """Words an audit without findings: how many parameters there are, how many got a gradient and moved."""
    models = _by_model(trace)
    if not models:
        return NOT_AUDITED
    return f"Nothing wrong found: {'; '.join(_looked_at(trace, model, of) for model, of in models)}."


def _looked_at(trace: Trace, model: str, of: pd.DataFrame) -> str:
    whole, frozen, with_gradient, _, moved = _counts(of)
    parameters = f"{units.counted(whole, 'parameter')} of {shown(model)}"
    if frozen:
        parameters += f", {units.count(frozen)} of them frozen"
    trained = whole - frozen
    if not with_gradient and not moved:
        return f"{parameters}: no gradient was computed"
    gradients = f"{_share(with_gradient, trained)} got a gradient"
    if not trace.meta.get("optimizer_steps"):
        return f"{parameters}: {gradients}, no optimizer stepped"
    both = "" if with_gradient == moved == trained else f"{_share(moved, trained)} "
    return f"{parameters}: {gradients} and {both}moved"


def _share(count: int, whole: int) -> str:
    return "all" if count == whole else f"{units.count(count)} of {units.count(whole)}"


def _by_model(trace: Trace) -> list[tuple[str, pd.DataFrame]]:
    """Returns the parameters of each model, each tensor once."""
    rows = PARAMETERS.check(trace.frames.get("parameters", PARAMETERS.frame()))
    rows = rows[(rows["kind"] == "parameter") & rows["tied_with"].isna()]
    return [(str(model), of) for model, of in rows.groupby("model", sort=False)]


def _counts(of: pd.DataFrame) -> list[int]:
    """Returns how many there are, are frozen, have a gradient, are in an optimizer, have moved."""
    has_gradient = of["requires_grad"] & of["gradient"].isin(["zero", "finite", "non_finite"])
    held, moved = of["in_optimizer"].fillna(0) == 1, of["changed_fraction"].fillna(0) > 0
    return [len(of), *(int(column.sum()) for column in (~of["requires_grad"], has_gradient, held, moved))]
