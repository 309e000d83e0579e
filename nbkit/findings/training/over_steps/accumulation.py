"""Finds gradients that a backward pass added to those of the step before, and means that add up undivided."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, at_ops, counting, rule
from nbkit.findings.training.facts import Accumulation, Audit
from nbkit.findings.training.names import about, listed_names, plural
from nbkit.ops.families import family
from nbkit.ops.names import packet_of
from nbkit.step.decode import arguments_of

ADVICE = "Call optimizer.zero_grad() before each backward pass that begins a step, or after each step."
EARLIER = (
    "If this backward pass begins a new step, call optimizer.zero_grad() before it; if it is one of several that "
    "are summed on purpose, this is as it should be."
)
# So many passes of one line in each step; fewer may be losses of their own.
FEWEST = 4
MEAN = 1  # of torch's reductions, and the one that a loss has where its arguments do not say
LOSSES = family("ELEMENT_LOSSES CLASS_LOSSES")
SCALING = frozenset(op for op in family("MULTIPLIES DIVIDES _foreach_mul _foreach_div") if op.endswith("_"))
SUMMED = (
    "If the passes are parts of one batch, divide each loss by their number before backward(); if the sum is meant, "
    "or the learning rate is divided in its place, this is as it should be."
)


class Met(NamedTuple):
    """Describes the steps that used the gradient of a parameter: (step as in ops, its storage_id) of each."""

    model: str
    name: str
    steps: Sequence[tuple[int, int | None]]
    is_earlier: bool  # what the first of them used lies in the memory of a gradient from before the recording


def accumulations(met: Iterable[Met], ops: pd.DataFrame, tensors: pd.DataFrame) -> list[Accumulation]:
    """Returns the parameters of which a step used a gradient that was added to an earlier one.

    Certain is only what the ops show: the same memory at both steps, a backward op that adds to it in between, and no
    op before that one which writes to it outside of the backward pass.
    """
    writes = _writes(ops, tensors)
    found = []
    for one in met:
        windows = list(pairwise(one.steps))  # what the recording shows whole stands first
        if one.is_earlier:
            windows.append(((-1, one.steps[0][1]), one.steps[0]))
        for (before, storage), (after, same) in windows:
            if storage is None or storage != same or storage not in writes:
                continue
            rows = writes[storage]
            between = rows[(rows["step"] > before) & (rows["step"] <= after)]
            if len(between) and between["adds"].iloc[0]:
                op_id = int(between["op_id"].iloc[0])
                found.append(Accumulation(one.model, one.name, op_id, is_earlier=before < 0))
                break
    return found


def _writes(ops: pd.DataFrame, tensors: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Returns the ops that write in place, by storage_id, in call order; `adds` is true of backward's sums."""
    names = [[*str(name).split("."), "", ""][1:3] for name in ops["op"].tolist()]
    in_place = np.array([name.endswith("_") or "out" in overload for name, overload in names], dtype=bool)
    is_aten = ((ops["level"] == "aten") & (ops["phase"] != "optimizer")).to_numpy(dtype=bool)
    writing = np.flatnonzero(in_place & is_aten)
    rows = tensors[(tensors["role"] == "output") & tensors["op_id"].isin(writing) & tensors["storage_id"].notna()]
    op_ids = rows["op_id"].to_numpy()
    is_sum = np.array([name == "add_" for name, _ in names], dtype=bool)
    adds = (ops["phase"] == "backward").to_numpy(dtype=bool) & is_sum
    table = pd.DataFrame(
        {
            "op_id": op_ids,
            "storage_id": rows["storage_id"].to_numpy(dtype=np.int64),
            "step": ops["step"].to_numpy()[op_ids],
            "adds": adds[op_ids],
        }
    )
    return {int(str(storage)): of for storage, of in table.groupby("storage_id", sort=False)}


@rule("error", "hint", rank=40)
def accumulated_gradient(audit: Audit) -> Iterator[Finding]:
    """A backward pass adds to the gradient that the step before used; a hint where it is from before the recording."""
    keys = dict.fromkeys((one.model, one.is_earlier) for one in audit.accumulations)
    for model, is_earlier in keys:
        alike = [one for one in audit.accumulations if (one.model, one.is_earlier) == (model, is_earlier)]
        names = [one.name for one in alike]
        whose = "from before the recording" if is_earlier else "of the step before"
        finding = accumulated_gradient.finding(
            severity="hint" if is_earlier else "error",
            message=f"The backward pass adds the {plural(names, 'gradient')} of {listed_names(audit, model, names)} to "
            f"{'that' if len(names) == 1 else 'those'} {whose}, and the optimizer uses the sum",
            advice=EARLIER if is_earlier else ADVICE,
            **about(names),
        )
        placed = at_ops(finding, audit.ops, [min(one.op_id for one in alike)], audit.texts)
        yield counting(placed, len(names))


@rule("hint", rank=300)
def summed_means(audit: Audit) -> list[Finding]:
    """At each step of the one optimizer 4 backward passes or more of one line add up, each begins at a mean, and
    nothing divides the gradients behind them.
    """
    if len(audit.optimizers) != 1:
        return []
    ended = [one for one in audit.passes if one.step < audit.steps]
    steps = [[one for one in ended if one.step == step] for step in sorted({one.step for one in ended})]
    if not steps or min(map(len, steps)) < FEWEST or any(one.is_cleared for one in ended):
        return []
    losses = [loss_of(audit, one.ops) for one in ended]
    if None in losses or any(_is_scaled(audit, passes[-1].ops.stop, passes[-1].step) for passes in steps):
        return []
    op_ids = [op_id for op_id in losses if op_id is not None]
    rows = audit.ops.iloc[op_ids]
    if rows["source"].nunique(dropna=False) > 1 or not all(map(_is_mean, rows["op"], rows["arguments"])):
        return []
    counts = sorted({len(passes) for passes in steps})
    many = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    message = (
        f"{many} backward passes add up to each step of {audit.optimizers[0]}, and each begins at a mean that is not "
        f"divided: the gradient is {many} times that of the mean over all of them"
    )
    return [at_ops(summed_means.finding(message, SUMMED), audit.ops, op_ids, audit.texts)]


def loss_of(audit: Audit, ops: range) -> int | None:
    """Returns the op that gave what a backward pass begins at; null if that is not one number of the recording."""
    began = [op_id for op_id in ops if audit.ops["op"].iloc[op_id] == "aten.ones_like.default"][:1]
    step = audit.step
    rows = [row for op_id in began for row in step.rows(op_id).tolist() if not step.is_output[row]]
    makers = step.makers[rows].tolist()
    return next((int(step.op_ids[maker]) for maker in makers if maker >= 0), None)


def _is_mean(op: str, arguments: object) -> bool:
    name = packet_of(op)
    reduction = arguments_of(arguments).get("reduction", MEAN)
    return name == "mean" or (name in LOSSES and reduction == MEAN)


def _is_scaled(audit: Audit, after: int, step: int) -> bool:
    """Returns whether gradients may be divided between the last pass and the step, by other than clipping."""
    ops = audit.ops.iloc[after:]
    ops = ops[(ops["step"] == step) & (ops["phase"] == "other") & ~ops["source"].isin([c.source for c in audit.clips])]
    return bool(ops["op"].map(packet_of).isin(SCALING).any())
