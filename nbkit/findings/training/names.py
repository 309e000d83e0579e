"""Names groups of parameters in a sentence."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from nbkit.findings.training.facts import Audit

MOST = 4


def listed_names(audit: Audit, model: str, names: Sequence[str]) -> str:
    """Returns 'encoder.a, encoder.b (4 tensors)': the modules that hold them; 'all 8 parameters of Net' if it is so.

    A single tensor, those directly in the model, and those of a module that holds others are named in full.
    """
    of_model = audit.trained[audit.trained["model"] == model]
    several = audit.trained["model"].nunique() > 1
    of = f" of {model}" if several else ""
    if len(names) == 1:
        return f"{names[0]}{of}"
    if len(names) == len(of_model):
        return f"all {len(names)} parameters of {model}"
    parts = _parts(of_model, names)
    if len(parts) == len(names):
        return f"{some(parts)}{of}"
    return f"{some(parts)}{of} ({len(names)} tensors)"


def _parts(of_model: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Returns the modules of which all parameters are named, and the names of other parameters.

    Where that are many, modules further out stand for those in them.
    """
    holders = dict(zip(of_model["name"], of_model["module"], strict=True))
    rest = {path for name in holders.keys() - set(names) for path in _around(holders[name])}
    parts = [holder if (holder := holders.get(name)) and holder not in rest else name for name in names]
    if len(set(parts)) > MOST:
        outer = [[path for path in _around(holders.get(name, "")) if path not in rest] for name in names]
        parts = [paths[0] if paths else part for paths, part in zip(outer, parts, strict=True)]
    return list(dict.fromkeys(parts))


def _around(path: str) -> list[str]:
    """Returns the paths of a module and of those around it, without the root, the outermost first."""
    names = path.split(".") if path else []
    return [".".join(names[: number + 1]) for number in range(len(names))]


def some(parts: Sequence[str]) -> str:
    """Returns the first of some names and how many others there are: 'a, b, c, d and 8 others'."""
    rest = len(parts) - MOST
    return ", ".join(parts) if rest <= 1 else f"{', '.join(parts[:MOST])} and {rest} others"


def plural(names: Sequence[str], noun: str) -> str:
    """Returns 'gradient' or 'gradients'."""
    return noun if len(names) == 1 else f"{noun}s"


def about(names: Sequence[str], **measured: Any) -> dict[str, Any]:
    """Returns the fields of a finding about these parameters."""
    return {
        "parameter": names[0] if len(names) == 1 else None,
        "count": len(names),
        "evidence": {"parameters": names, **measured},
    }


def by_model(rows: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """Returns the names of some parameters by their model."""
    return [(str(model), of["name"].tolist()) for model, of in rows.groupby("model", sort=False)]
