"""Names groups of parameters in a sentence."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from nbkit.findings.finding import Finding
from nbkit.findings.training.facts import Audit

MOST = 4


def listed_names(audit: Audit, model: str, names: Sequence[str]) -> str:
    """Returns 'encoder.a, encoder.b (4 tensors)': the modules that hold them; 'all 8 parameters of Net' if it is so.

    A single tensor, and those directly in the model, are named in full.
    """
    of_model = audit.trained[audit.trained["model"] == model]
    several = audit.trained["model"].nunique() > 1
    of = f" of {model}" if several else ""
    if len(names) == 1:
        return f"{names[0]}{of}"
    if len(names) == len(of_model):
        return f"all {len(names)} parameters of {model}"
    holders = dict(zip(of_model["name"], of_model["module"], strict=True))
    parts = list(dict.fromkeys(holders.get(name) or name for name in names))
    if parts == list(names):
        return f"{_some(parts)}{of}"
    return f"{_some(parts)}{of} ({len(names)} tensors)"


def _some(parts: Sequence[str]) -> str:
    rest = len(parts) - MOST
    return ", ".join(parts) if rest <= 1 else f"{', '.join(parts[:MOST])} and {rest} others"


def plural(names: Sequence[str], noun: str) -> str:
    """Returns 'gradient' or 'gradients'."""
    return noun if len(names) == 1 else f"{noun}s"


def owner(finding: Finding, names: Sequence[str]) -> Finding:
    """Returns a finding that stands for as many parameters."""
    return replace(finding, count=len(names))


def by_model(rows: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """Returns the names of some parameters by their model."""
    return [(str(model), of["name"].tolist()) for model, of in rows.groupby("model", sort=False)]
