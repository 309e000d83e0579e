"""Judges batch norm: statistics that do not move in training mode, and layers in eval mode in a model that trains."""

from collections.abc import Sequence

import pandas as pd

from nbkit.findings.finding import Finding, at_ops
from nbkit.findings.training.facts import Audit

TYPES = ("BatchNorm", "SyncBatchNorm", "LazyBatchNorm")
OPS = ("aten.native_batch_norm", "aten._native_batch_norm", "aten.batch_norm", "aten.cudnn_batch_norm")
MOST_NAMES = 3
MOVING = (
    "Give the layers a momentum, 0.1 by default: in eval mode they normalise with these statistics, which are those "
    "from before training."
)
FROZEN = (
    "If the layers are to stay as they are, freeze their weights as well, requires_grad_(False); else put them into "
    "training mode with model.train()."
)


def static_statistics(audit: Audit) -> list[Finding]:
    """Returns a finding for each model whose batch norm layers normalise in training mode with a momentum of 0."""
    ops = audit.ops
    norms = ops[ops["op"].str.startswith(OPS) & (ops["phase"] == "forward")]
    arguments = norms["arguments"].fillna("")
    chosen = arguments.str.contains('"training": true', regex=False) & arguments.str.contains(
        r'"momentum": 0(?:\.0)?[,}]', regex=True
    )
    reading = audit.tensors[audit.tensors["op_id"].isin(norms["op_id"][chosen]) & (audit.tensors["role"] == "input")]
    rows = audit.parameters
    still = rows["name"][rows["name"].str.endswith("running_mean") & (rows["changed_fraction"] == 0)]
    reading = reading[reading["name"].isin(still)]
    findings = []
    for model, of in norms[norms["op_id"].isin(reading["op_id"])].groupby("model", sort=False):
        layers = list(dict.fromkeys(of["module"]))
        message = (
            f"{_layers(layers)} of {model} {_verb(layers, 'normalises', 'normalise')} with the statistics of the "
            f"batch, but with a momentum of 0 {_verb(layers, 'its', 'their')} running statistics do not move"
        )
        findings.append(_finding(audit, "static_statistics", message, MOVING, of["op_id"].tolist(), layers))
    return findings


def norms_in_eval(audit: Audit) -> list[Finding]:
    """Returns a finding for each model in training mode of which batch norm layers with trained weights are not."""
    findings = []
    modes, modules = audit.modes, audit.modules
    for model in dict.fromkeys(model for model, path, _ in modes if path == ""):
        if not audit.has_backward or not all(
            is_on for (of, path, _), is_on in modes.items() if (of, path) == (model, "")
        ):
            continue
        layers = modules["module"][(modules["model"] == model) & modules["type"].str.startswith(TYPES)]
        off = [path for path in layers if _is_off(audit, model, path) and _is_trained(audit.trained, model, path)]
        ops = audit.ops[(audit.ops["model"] == model) & (audit.ops["phase"] == "forward")]
        calls = ops["op_id"][ops["module"].isin(off) & ops["op"].str.startswith(OPS)]
        if off and len(calls):
            message = (
                f"{_layers(off)} of {model} {_verb(off, 'is', 'are')} in eval mode while {model} trains: "
                f"{_verb(off, 'its', 'their')} weights are trained, the running statistics do not move"
            )
            findings.append(_finding(audit, "batch_norm_in_eval", message, FROZEN, calls.tolist(), off))
    return findings


def _calls(audit: Audit, model: str, path: str) -> list[bool]:
    """Returns the mode of each call of a module."""
    return [is_on for (of, module, _), is_on in audit.modes.items() if (of, module) == (model, path)]


def _is_off(audit: Audit, model: str, path: str) -> bool:
    calls = _calls(audit, model, path)
    return bool(calls) and not any(calls)


def _is_trained(rows: pd.DataFrame, model: str, path: str) -> bool:
    mine = rows[(rows["model"] == model) & (rows["module"] == path)]
    return bool((mine["requires_grad"] & (mine["optimizer_steps"].fillna(0) > 0)).any())


def _layers(paths: Sequence[str]) -> str:
    """Returns 'Batch norm bn1', or '12 batch norm layers (bn1, bn2, ...)'."""
    if len(paths) == 1:
        return f"Batch norm {paths[0]}"
    return f"{len(paths):,} batch norm layers ({', '.join([*paths[:MOST_NAMES], *['...'][: len(paths) - MOST_NAMES]])})"


def _verb(paths: Sequence[str], one: str, several: str) -> str:
    return one if len(paths) == 1 else several


def _finding(audit: Audit, rule: str, message: str, advice: str, op_ids: list[int], layers: list[str]) -> Finding:
    finding = Finding(rule, "hint", message, advice, evidence={"modules": layers})
    return at_ops(finding, audit.ops, op_ids, audit.texts)
