"""Judges batch norm: statistics that stand still, move though frozen or were never set, lone samples, eval mode."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from nbkit.findings.finding import Finding, Rule, at_ops, rule
from nbkit.findings.training.facts import Audit
from nbkit.findings.training.names import some
from nbkit.ops.families import BATCH_NORMS
from nbkit.ops.names import packet_of
from nbkit.step.decode import arguments_of

TYPES = ("BatchNorm", "SyncBatchNorm", "LazyBatchNorm")
MOVING = (
    "Give the layers a momentum, 0.1 by default: in eval mode they normalize with these statistics, which are those "
    "from before training."
)
FROZEN = (
    "If the layers are to stay as they are, freeze their weights as well, requires_grad_(False); else put them into "
    "training mode with model.train()."
)
FORGETFUL = (
    "If the number comes from TensorFlow, Keras or JAX, where it is the share that is kept, write momentum={:.2g}. "
    "Nothing, if the last batch is to count alone."
)
# Torch's default is 0.1, theirs 0.99 or 0.9. One of 1 keeps nothing, which is meant.
MOST_KEPT = 0.9
LONE = "Use larger batches, GroupNorm or InstanceNorm, or keep the batch norms of a trained model in eval mode."
DRIFT = "Put frozen layers into eval mode, layer.eval(), after each model.train(): that turns training mode on again."
UNSET = "Train the model, or load its buffers with its weights, before it is evaluated."


@rule("hint", rank=140)
def static_statistics(audit: Audit) -> Iterator[Finding]:
    """Batch norm layers normalize with the batch, and a momentum of 0 keeps their running statistics
    where they were.
    """
    ops = audit.ops
    norms = ops[ops["op"].map(packet_of).isin(BATCH_NORMS) & (ops["phase"] == "forward")]
    arguments = norms["arguments"].fillna("")
    chosen = arguments.str.contains('"training": true', regex=False) & arguments.str.contains(
        r'"momentum": 0(?:\.0)?[,}]', regex=True
    )
    reading = audit.tensors[audit.tensors["op_id"].isin(norms["op_id"][chosen]) & (audit.tensors["role"] == "input")]
    rows = audit.parameters
    still = rows["name"][rows["name"].str.endswith("running_mean") & (rows["changed_fraction"] == 0)]
    reading = reading[reading["name"].isin(still)]
    for model, of in norms[norms["op_id"].isin(reading["op_id"])].groupby("model", sort=False):
        layers = list(dict.fromkeys(of["module"]))
        message = (
            f"{_layers(layers)} of {model} {_verb(layers, 'normalizes', 'normalize')} with the statistics of the "
            f"batch, but with a momentum of 0 {_verb(layers, 'its', 'their')} running statistics do not move"
        )
        yield _finding(audit, static_statistics, message, MOVING, of["op_id"].tolist(), layers)


@rule("hint", rank=142)
def forgetful_statistics(audit: Audit) -> Iterator[Finding]:
    """Batch norm layers that are trained have a momentum of 0.9 or more, below 1, by which their running statistics
    are nearly those of the last batch: in other frameworks such a number is the share that is kept.
    """
    if not audit.steps or not audit.has_backward:
        return
    ops, trained = audit.ops, audit.trainable
    norms = ops[ops["op"].map(packet_of).isin(BATCH_NORMS) & (ops["phase"] == "forward") & (ops["level"] == "aten")]
    given = [arguments_of(text) for text in norms["arguments"].tolist()]
    momenta = pd.Series([_momentum(one) for one in given], norms.index, dtype=float)
    rows = audit.parameters
    moves = rows["name"].str.endswith("running_mean") & (rows["changed_fraction"].fillna(0) > 0)
    moved = {*zip(rows["model"][moves], rows["module"][moves], strict=True)}
    learned = {*zip(trained["model"], trained["module"], strict=True)}
    found = momenta.between(MOST_KEPT, 1, inclusive="left")
    for (model, share), of in norms[found].groupby(["model", momenta[found]], sort=False):
        momentum = float(str(share))
        layers = [path for path in dict.fromkeys(of["module"]) if (model, path) in moved & learned]
        calls = of["op_id"][of["module"].isin(layers)].tolist()
        if layers:
            message = (
                f"{_layers(layers)} of {model} {_verb(layers, 'has', 'have')} momentum={momentum:g}, which in torch is "
                f"the share of the new batch: the running statistics keep {1 - momentum:.2g} of what they were, and "
                "eval mode normalizes with those of the last batch"
            )
            yield _finding(audit, forgetful_statistics, message, FORGETFUL.format(1 - momentum), calls, layers)


def _momentum(arguments: Mapping[str, Any]) -> float:
    """Returns the momentum of a batch norm that takes the statistics of the batch; NaN of another."""
    return float(arguments.get("momentum") or "nan") if arguments.get("training", True) else float("nan")


@rule("hint", rank=145)
def moving_statistics(audit: Audit) -> Iterator[Finding]:
    """Running statistics of batch norm layers move, whose weights are frozen, while other parameters are trained."""
    rows = audit.parameters
    drifts = rows["name"].str.endswith("running_mean") & (rows["changed_fraction"].fillna(0) > 0)
    frozen = rows[rows["kind"] == "parameter"].groupby(["model", "module"])["requires_grad"].any()
    for model, of in rows[drifts].groupby("model", sort=False) if len(audit.trainable) else ():
        layers = [path for path in of["module"] if not frozen.get((model, path), True)]
        ops = audit.ops[(audit.ops["model"] == model) & audit.ops["module"].isin(layers)]
        calls = ops["op_id"][ops["op"].map(packet_of).isin(BATCH_NORMS) & (ops["phase"] != "backward")]
        if layers and len(calls):
            message = (
                f"{_layers(layers)} of {model} {_verb(layers, 'is', 'are')} frozen (requires_grad=False) but in "
                f"training mode: {_verb(layers, 'its', 'their')} running statistics move with each batch, and eval "
                "mode gives other results than before"
            )
            yield _finding(audit, moving_statistics, message, DRIFT, calls.tolist(), layers)


@rule("hint", rank=130)
def batch_norm_in_eval(audit: Audit) -> Iterator[Finding]:
    """Batch norm layers are in eval mode in a model that trains, and their own weights are trained."""
    modes, modules = audit.modes, audit.modules
    for model in dict.fromkeys(model for model, path, _ in modes if path == ""):
        if not audit.has_backward or not all(
            is_on for (of, path, _), is_on in modes.items() if (of, path) == (model, "")
        ):
            continue
        layers = modules["module"][(modules["model"] == model) & modules["type"].str.startswith(TYPES)]
        off = [path for path in layers if _is_off(audit, model, path) and _is_trained(audit.trained, model, path)]
        ops = audit.ops[(audit.ops["model"] == model) & (audit.ops["phase"] == "forward")]
        calls = ops["op_id"][ops["module"].isin(off) & ops["op"].map(packet_of).isin(BATCH_NORMS)]
        if off and len(calls):
            message = (
                f"{_layers(off)} of {model} {_verb(off, 'is', 'are')} in eval mode while {model} trains: "
                f"{_verb(off, 'its', 'their')} weights are trained, the running statistics do not move"
            )
            yield _finding(audit, batch_norm_in_eval, message, FROZEN, calls.tolist(), off)


@rule("hint", rank=170)
def lone_sample(audit: Audit) -> Iterator[Finding]:
    """A batch norm in training mode gets one sample."""
    ops = audit.ops
    norms = ops[ops["op"].str.contains("batch_norm") & (ops["level"] == "aten") & (ops["phase"] == "forward")]
    first = audit.tensors[(audit.tensors["role"] == "input") & (audit.tensors["position"] == 0)]
    # Instance norm runs the same op on one sample, without statistics of a module that eval mode would use.
    running = audit.tensors["op_id"][audit.tensors["name"].str.endswith("running_mean", na=False)]
    lone = set(first["op_id"][first["shape"].str.startswith("[1,")].tolist()) & set(running.tolist())
    found = [
        op_id for op_id in norms["op_id"] if op_id in lone and '"training": true' in str(ops["arguments"].iloc[op_id])
    ]
    for (_, module), of in ops.iloc[found].groupby(["model", "module"], sort=False, dropna=False):
        finding = lone_sample.finding(
            message=f"Batch norm{f' {module}' if module else ''} in training mode gets a batch of one sample: it takes "
            "mean and variance of that sample alone, and eval mode gives other results",
            advice=LONE,
        )
        yield at_ops(finding, ops, of["op_id"].tolist(), audit.texts)


@rule("hint", rank=180)
def unset_statistics(audit: Audit) -> Iterator[Finding]:
    """An evaluation uses a batch norm with the mean 0 and the variance 1 that it was made with."""
    calls = {(model, module) for (model, module, _), training in audit.modes.items() if not training}
    if audit.has_backward:  # beside what is trained only what should follow it: an average, a copy
        calls = {(model, module) for model, module in calls if _has_moving_twin(audit, model, module)}
    for model in audit.modules["model"].unique():
        modules = sorted(module for name, module in audit.unset_statistics & calls if name == model)
        if modules:
            yield unset_statistics.finding(
                message=f"{some(modules)} of {model} in eval mode: a mean of 0 and a variance of 1, which no batch "
                "has set, normalize nothing",
                advice=UNSET,
                module=modules[0],
                count=len(modules),
                evidence={"modules": modules},
            )


def _has_moving_twin(audit: Audit, model: str, module: str) -> bool:
    """Returns whether another model, of which this one is an untrained copy, has moving statistics of that name."""
    rows, trained = audit.parameters, set(audit.trainable["model"])
    moves = (rows["name"] == f"{module}.running_mean") & (rows["changed_fraction"].fillna(0) > 0)
    return model not in trained and bool((moves & (rows["model"] != model)).any())


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
    """Returns 'Batch norm bn1', or '12 batch norm layers (a, b, c, d and 8 others)'."""
    if len(paths) == 1:
        return f"Batch norm {paths[0]}"
    return f"{len(paths):,} batch norm layers ({some(paths)})"


def _verb(paths: Sequence[str], one: str, several: str) -> str:
    return one if len(paths) == 1 else several


def _finding(audit: Audit, of: Rule, message: str, advice: str, op_ids: list[int], layers: list[str]) -> Finding:
    finding = of.finding(message, advice, evidence={"modules": layers})
    return at_ops(finding, audit.ops, op_ids, audit.texts)
