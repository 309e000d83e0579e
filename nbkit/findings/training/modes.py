"""Judges training and eval modes: dropout that draws in eval mode, training in eval mode."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import pandas as pd

from nbkit.findings.dataflow.flow import Op
from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Audit, at_line
from nbkit.findings.training.names import some
from nbkit.ops.families import BATCH_NORMS, CLASS_CHOICES, DRAWS
from nbkit.ops.names import packet_of
from nbkit.step.decode import arguments_of
from nbkit.step.reachable import reachable

DROPOUT = re.compile(r"torch\.(nn\.functional\.)?(\w*dropout\w*|scaled_dot_product_attention)")
DRAWING = DRAWS | {"native_dropout"}
# Layers that do something else in eval mode.
WITH_MODES = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "BatchNorm", "SyncBatchNorm", "LazyBatchNorm")
ADVICE = "Pass training=self.training to the function, or use torch.nn.Dropout, which model.eval() turns off."
EVAL = "Call model.eval() before, and model.train() before training goes on. Nothing, if it is no evaluation."
# A mask that hides most is no dropout of a layer.
MOST_DROPPED, MOST_OPS = 0.8, 2_000
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


@rule("hint", rank=112)
def heavy_dropout(audit: Audit) -> Iterator[Finding]:
    """A dropout sets 0.8 of the values or more to 0: in other frameworks such a number is the share that is kept."""
    ops = audit.ops
    draws = ops[ops["op"].map(packet_of).isin(DRAWING) & (ops["phase"] == "forward")]
    found = dict[int, float]()
    for op_id in (one for one in draws["op_id"].tolist() if _is_dropout(ops, one)):
        share, name = arguments_of(ops["arguments"].iloc[op_id]).get("p"), packet_of(ops["op"].iloc[op_id])
        dropped = -1.0 if not isinstance(share, int | float) else share if "dropout" in name else 1 - share
        if MOST_DROPPED <= dropped < 1:
            found[op_id] = round(dropped, 6)
    for dropped in dict.fromkeys(found.values()):
        alike = ops.iloc[[op_id for op_id, share in found.items() if share == dropped]]
        for (_, module), of in alike.groupby(["model", "module"], sort=False, dropna=False):
            finding = heavy_dropout.finding(
                f"The dropout{f' {module}' if isinstance(module, str) and module else ''} sets {dropped:g} of the "
                f"values to 0, and keeps {1 - dropped:.2g}",
                f"If the number is the share to keep, as keep_prob of TensorFlow 1, write p={1 - dropped:.2g}.",
            )
            yield at_ops(finding, ops, of["op_id"].tolist(), audit.texts)


@rule("hint", rank=118)
def evaluated_in_training(audit: Audit) -> Iterator[Finding]:
    """A model that is trained runs without autograd in training mode, with dropout or batch norm on, and what it gives
    is compared with labels alone: an evaluation without eval().
    """
    flow, needs, trained = audit.flow, audit.step.requires_grad, set(audit.trainable["model"])
    found: dict[str, tuple[Op, list[Op]]] = {}
    for op in flow.ops.values():
        is_norm = op.name in BATCH_NORMS and op.arguments.get("training") is True
        is_on = is_norm or (op.name in DRAWING and _is_dropout(audit.ops, op.op_id))
        if not is_on or not op.outputs or needs[op.outputs[0].row]:
            continue
        row = audit.ops.iloc[op.op_id]
        if row["model"] not in trained or _mode(audit, row) is not True:
            continue
        met = reachable([op.op_id], lambda one: [to.op_id for to in flow.readers(flow.ops[one])])
        after = [flow.ops[one] for one in islice(met, MOST_OPS)]
        if any(needs[made.row] for one in after for made in one.outputs) or not _is_counted(after):
            continue
        last = next(one for one in after if one.name == "eq")
        found.setdefault(str(row["model"]), (last, []))[1].append(op)
    for model, (last, ops) in found.items():
        layers = list(dict.fromkeys(str(op.module) for op in ops))
        finding = evaluated_in_training.finding(
            f"{model} is evaluated in training mode: it runs without autograd, its results are compared with labels, "
            f"and {some(layers)} {'is' if len(layers) == 1 else 'are'} as in training: dropout draws, and batch norms "
            "take the batch and keep its statistics",
            EVAL,
            evidence={"modules": layers},
        )
        yield at_ops(finding, audit.ops, [last.op_id], audit.texts)


def _is_counted(ops: Sequence[Op]) -> bool:
    """Returns whether classes are chosen among results, and compared; not where something is drawn of them."""
    names = {op.name for op in ops}
    is_drawn = bool(names & {"multinomial", "bernoulli"})
    return "eq" in names and bool(names & CLASS_CHOICES) and not is_drawn


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
