"""Finds layers of which most outputs, or all, are 0 for every row of the batch behind a ReLU."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Activation, Audit
from nbkit.ops.families import CONVOLUTIONS, PERMUTES, RELUS, family

LAYERS = family("LAYER_PRODUCTS CONVOLUTIONS")
# They keep the units of a layer, between its product and its activation.
BETWEEN = family("FORMS ADDS NORMS DROPOUTS") - PERMUTES
MOST_STEPS = 12
# With fewer rows or units it may be chance.
FEWEST_ROWS, FEWEST_UNITS = 4, 8
MOST_DEAD, UNITS_OF_MANY, ROWS_OF_MANY = 0.9, 16, 8
ADVICE = (
    "Look at the bias and the scale of that layer, and at the learning rate: a ReLU passes no gradient where it is 0, "
    "so that these units do not come back by themselves. LeakyReLU and GELU pass one."
)


@rule("warning", "hint", rank=150)
def dead_units(audit: Audit) -> list[Finding]:
    """Behind a ReLU all units of a layer are 0 in every row of the batch, in training mode: a warning; 90 % of 16 or
    more: a hint.
    """
    if not audit.has_backward or not any(_is_suspect(one) for one in audit.activations):
        return []
    flow = audit.flow
    parents = audit.ops["parent_id"].to_numpy(dtype=np.int64, na_value=-1)
    relus = {int(parents[op.op_id]): op for op in flow.named(*RELUS) if not op.arguments.get("min_val")}
    by_layer: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for activation in audit.activations:
        op = relus.get(activation.op_id)
        layer = None if op is None else _layer(flow, op)
        if layer is None:
            continue
        is_convolution = layer.name in CONVOLUTIONS
        mask = activation.dead_channels if is_convolution else activation.dead_last
        if mask is not None and len(mask) == layer.outputs[0].shape[1 if is_convolution else -1]:
            place = str(audit.ops["model"].iloc[layer.op_id]), str(layer.module)
            by_layer[place].append(Call(activation.op_id, mask, activation.numel // len(mask)))
    findings = [_judged(audit, model, path, calls) for (model, path), calls in by_layer.items()]
    return [finding for finding in findings if finding is not None]


class Call(NamedTuple):
    """Describes one call of a layer: which units were 0 in every row of the result, and how many rows it had."""

    op_id: int
    dead: np.ndarray
    rows: int


def _is_suspect(activation: Activation) -> bool:
    masks = (activation.dead_last, activation.dead_channels)
    return any(mask is not None and len(mask) and mask.mean() >= MOST_DEAD for mask in masks)


def _layer(flow: Flow, op: Op) -> Op | None:
    """Returns the product with a weight whose result an activation reads; null where something else stands between."""
    for _ in range(MOST_STEPS):
        maker = flow.maker(op.inputs[0]) if op.inputs else None
        if maker is None or not maker.is_ahead or maker.module is None:
            return None
        if maker.name in LAYERS:
            return maker if maker.outputs else None
        if maker.name not in BETWEEN:
            return None
        op = maker
    return None


def _judged(audit: Audit, model: str, path: str, calls: Sequence[Call]) -> Finding | None:
    """Returns a finding of one layer, if most of its units are dead in all its calls."""
    if len({len(call.dead) for call in calls}) != 1:
        return None
    dead, rows = np.logical_and.reduce([call.dead for call in calls]), sum(call.rows for call in calls)
    units, count = len(dead), int(dead.sum())
    is_all = count == units and units >= FEWEST_UNITS and rows >= FEWEST_ROWS
    is_most = count >= MOST_DEAD * units and units >= UNITS_OF_MANY and rows >= ROWS_OF_MANY
    if not is_all and not is_most:
        return None
    of = f"All {units:,}" if is_all else f"{count:,} of {units:,}"
    end = ": nothing passes, and no gradient comes back" if is_all else ""
    finding = dead_units.finding(
        severity="warning" if is_all else "hint",
        message=f"{of} outputs of {path or model} are 0 behind their activation, in each of {rows:,} rows{end}",
        advice=ADVICE,
        evidence={"layer": path, "units": units, "dead_units": count, "rows": rows},
    )
    return at_ops(finding, audit.ops, [call.op_id for call in calls], audit.texts)
