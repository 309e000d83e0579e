"""Judges training and eval modes: dropout that draws in eval mode, training in eval mode."""

import re
from collections.abc import Iterator

import pandas as pd

from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Audit, at_line
from nbkit.ops.families import DRAWS
from nbkit.ops.names import packet_of

DROPOUT = re.compile(r"torch\.(nn\.functional\.)?(\w*dropout\w*|scaled_dot_product_attention)")
DRAWING = DRAWS | {"native_dropout"}
# Layers that do something else in eval mode.
WITH_MODES = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "BatchNorm", "SyncBatchNorm", "LazyBatchNorm")
ADVICE = "Pass training=self.training to the function, or use torch.nn.Dropout, which model.eval() turns off."
TRAIN = "Call model.train() before training, if these layers are to be on."


@rule("warning", rank=110)
def dropout_in_eval(audit: Audit) -> Iterator[Finding]:
    """A dropout function draws random numbers in a module in eval mode."""
    ops = audit.ops
    draws = ops[ops["op"].map(packet_of).isin(DRAWING) & (ops["phase"] == "forward")]
    found = [op_id for op_id in draws["op_id"] if _is_dropout(ops, op_id) and _mode(audit, ops.iloc[op_id]) is False]
    for _, alike in ops.iloc[found].groupby(["op", "model", "module", "source"], sort=False, dropna=False):
        first = alike.iloc[0]
        where = f" of {first['module']}" if first["module"] else ""
        line = at_line(audit, first["source"])
        finding = dropout_in_eval.finding(
            message=f"{first['op'].rpartition('.')[0]} draws random numbers for a dropout{where} in eval mode{line}",
            advice=ADVICE,
        )
        yield at_ops(finding, ops, alike["op_id"].tolist(), audit.texts)


def _is_dropout(ops: pd.DataFrame, op_id: int) -> bool:
    """Returns whether an op is part of a call of a dropout function."""
    names, parents = ops["op"], ops["parent_id"]
    current = parents.iloc[op_id]
    while not pd.isna(current):
        if DROPOUT.fullmatch(str(names.iloc[int(current)])):
            return True
        current = parents.iloc[int(current)]
    return False


def _mode(audit: Audit, op: pd.Series) -> bool | None:
    """Returns the mode of the module call of an op; null outside of all."""
    if pd.isna(op["module_call"]) or not isinstance(op["module"], str):
        return None
    return audit.modes.get((op["model"], op["module"], int(op["module_call"])))


@rule("hint", rank=120)
def trained_in_eval(audit: Audit) -> Iterator[Finding]:
    """An optimizer trains a model in eval mode that has dropout or batch norm."""
    trained = set(audit.trained["model"][audit.trained["optimizer_steps"].fillna(0) > 0])
    modules = audit.modules
    for model in modules["model"].unique():
        roots = [mode for (name, path, _), mode in audit.modes.items() if name == model and path == ""]
        layers = modules[
            (modules["model"] == model) & modules["type"].str.startswith(WITH_MODES) & (modules["calls"] > 0)
        ]
        if model not in trained or not audit.has_backward or not roots or any(roots) or not len(layers):
            continue
        types = ", ".join(layers["type"].unique())
        yield trained_in_eval.finding(
            message=f"The optimizer trains {model} in eval mode, in which its {types} layers are off",
            advice=TRAIN,
            count=len(layers),
            evidence={"modules": layers["module"].tolist()},
        )
