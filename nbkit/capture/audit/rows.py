"""Makes the frame `parameters` of what was kept while a recording ran."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from nbkit.capture.audit.measures import Gradient, measured_change, measured_gradient, values_of
from nbkit.capture.audit.models import AuditedModel, Followed, Held
from nbkit.capture.frames.tensor_rows import dtype_text, sizes_text
from nbkit.capture.raw.shards import local_shard
from nbkit.schema import PARAMETERS


def parameters_frame(
    models: Sequence[AuditedModel],
    labels: Sequence[str],
    calls: Mapping[int, int],
    knows_optimizers: bool,
    accumulated: Mapping[tuple[int, str], bool],
) -> pd.DataFrame:
    """Returns a row for each tensor that the models hold now.

    `calls` counts those of modules by id, `accumulated` says it of each (number of the model, name) that was updated.
    """
    rows: list[dict[str, Any]] = []
    first: dict[int, str] = {}
    for number, (model, label) in enumerate(zip(models, labels, strict=True)):
        for held in model.held():
            tied_with = first.get(id(held.tensor))
            first.setdefault(id(held.tensor), held.name)
            row = {"model": label, "tied_with": tied_with, "calls": calls.get(id(held.owner), 0), **_tensor(held)}
            if tied_with is None:
                row |= _change(model, held)
                if held.kind == "parameter":
                    row |= _training(model.of(held.name), held, knows_optimizers)
                    added = accumulated.get((number, held.name))
                    row["accumulated"] = None if added is None else int(added)
            rows.append(row)
    return PARAMETERS.frame(rows)


def _tensor(held: Held) -> dict[str, Any]:
    tensor = local_shard(held.tensor)
    return {
        "name": held.name,
        "kind": held.kind,
        "module": held.module,
        "shape": sizes_text(tensor.shape),
        "numel": tensor.numel(),
        "dtype": dtype_text(tensor.dtype),
        "device": str(tensor.device),
        "requires_grad": held.tensor.requires_grad,
    }


def _change(model: AuditedModel, held: Held) -> dict[str, Any]:
    before, after = model.before.get(held.name), values_of(held.tensor)
    if before is None or after is None:
        return {}
    update, changed = measured_change(before, after.detach())
    return {"update_fraction": update, "changed_fraction": changed}


def _training(followed: Followed, held: Held, knows_optimizers: bool) -> dict[str, Any]:
    gradient = followed.gradient()
    if gradient is None and held.tensor.is_leaf:
        gradient = measured_gradient(held.tensor.grad)
    row: dict[str, Any] = _gradient(gradient)
    if knows_optimizers:
        steps = sum(update.is_done for update in followed.updates)
        row |= {
            "in_optimizer": int(followed.in_optimizer),
            "optimizer_steps": steps,
            "skipped_steps": len(followed.updates) - steps,
        }
    return row | {"learning_rate": followed.learning_rate, "weight_decay": followed.weight_decay}


def _gradient(gradient: Gradient | None) -> dict[str, Any]:
    if gradient is None:
        return {}
    return {
        "gradient": gradient.state,
        "gradient_norm": gradient.norm,
        "gradient_zero_fraction": gradient.zero_fraction,
    }
