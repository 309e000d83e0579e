"""Works out what one rank costs where ranks share parameters, gradients and optimizer state."""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from nbkit.capture.cost.storages import GRADIENT, PARAMETER, STATE
from nbkit.capture.cost.what_if.ranks import COUNTER_BYTES, Gathered, of_one_rank
from nbkit.trace.trace import Trace


class Unit(NamedTuple):
    """Describes modules whose parameters are gathered together, with the bytes of these and of their gradients."""

    paths: frozenset[str]
    is_root: bool
    parameter_bytes: int
    gradient_bytes: int


def fully_sharded(
    trace: Trace, models: Mapping[str, nn.Module], ranks: int, dtype: torch.dtype | None, parts: Mapping[int, int]
) -> Trace:
    """Returns the trace of one of the ranks that share a step's parameters, gradients and state.

    `models` are by label; `parts` says into how many parts a parameter, by its id, is split already.
    """
    storages, costs = trace.storages, trace.costs
    sizes = storages["size_bytes"].to_numpy(np.int64)
    is_counter = ((storages["kind"] == STATE) & (storages["size_bytes"] <= COUNTER_BYTES)).to_numpy(bool)
    is_split = storages["kind"].isin([PARAMETER, GRADIENT, STATE]).to_numpy(bool) & ~is_counter
    gathered: list[Gathered] = []
    sent = {"all_gather_bytes": 0, "reduce_scatter_bytes": 0}
    for label, model in models.items():
        own = costs[(costs["model"] == label).to_numpy(bool)]
        for unit in _units(model, dtype, parts):
            for one, is_backward in _held(own, unit):
                gathered.append(one)
                is_gather = not (unit.is_root and is_backward)
                sent["all_gather_bytes"] += is_gather * _others(unit.parameter_bytes, ranks)
                sent["reduce_scatter_bytes"] += is_backward * _others(unit.gradient_bytes, ranks)
    is_update = (costs["phase"] == "optimizer").to_numpy(bool)
    moved = {
        name: np.where(is_update, -(-costs[name].to_numpy() // ranks), costs[name])
        for name in ("read_bytes", "written_bytes")
    }
    return of_one_rank(
        trace,
        np.where(is_split, -(-sizes // ranks), sizes),
        gathered,
        sent,
        f"Parameters, gradients and optimizer state are shared by {ranks} ranks; all measures are those of one rank.",
        costs=costs.assign(**moved),
    )


def _others(size_bytes: int, ranks: int) -> int:
    """Returns the bytes that a rank sends for a ring's all-gather or reduce-scatter of so many bytes."""
    return ceil(size_bytes * (ranks - 1) / ranks)


def _units(model: nn.Module, dtype: torch.dtype | None, parts: Mapping[int, int]) -> Iterator[Unit]:
    """Gives the modules in the outermost lists and sequences of a model, and the rest of it as one."""
    taken: set[int] = set()
    paths: set[str] = set()
    for path, module in _blocks(model, ""):
        inside = frozenset(f"{path}.{name}" if name else path for name, _ in module.named_modules())
        parameters = [each for each in module.parameters() if id(each) not in taken]
        taken |= {id(each) for each in parameters}
        paths |= inside
        yield _unit(inside, False, parameters, dtype, parts)
    rest = frozenset(name for name, _ in model.named_modules()) - paths
    yield _unit(rest, True, [each for each in model.parameters() if id(each) not in taken], dtype, parts)


def _blocks(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Module]]:
    for name, child in module.named_children():
        below = f"{path}.{name}" if path else name
        if isinstance(module, nn.ModuleList | nn.Sequential):
            yield below, child
        else:
            yield from _blocks(child, below)


def _unit(
    paths: frozenset[str],
    is_root: bool,
    parameters: Iterable[Tensor],
    dtype: torch.dtype | None,
    parts: Mapping[int, int],
) -> Unit:
    held = trained = 0
    for each in parameters:
        itemsize = dtype.itemsize if dtype is not None and each.is_floating_point() else each.element_size()
        size = ceil(each.numel() * itemsize / parts.get(id(each), 1))
        held += size
        trained += size * each.requires_grad
    return Unit(paths, is_root, held, trained)


def _held(costs: pd.DataFrame, unit: Unit) -> Iterator[tuple[Gathered, bool]]:
    """Gives what a unit holds in each of its passes, and whether that is a backward pass.

    The root's parameters stay from the forward pass on; in the backward pass it holds its gradients.
    """
    if not unit.parameter_bytes:
        return
    inside = costs[costs["module"].isin(unit.paths).to_numpy(bool)]
    is_backward = (costs["phase"] == "backward").to_numpy(bool)
    every = costs.loc[is_backward, "op_id"].to_numpy()
    forward = inside.loc[(inside["phase"] != "backward").to_numpy(bool), "op_id"].to_numpy()
    backward = inside.loc[(inside["phase"] == "backward").to_numpy(bool), "op_id"].to_numpy()
    passes = [
        part for part in np.split(forward, np.flatnonzero(np.diff(np.searchsorted(every, forward))) + 1) if len(part)
    ]
    for number, part in enumerate(passes):
        until = passes[number + 1][0] if number + 1 < len(passes) else np.iinfo(np.int64).max
        after = backward[(backward > part[-1]) & (backward < until)]
        end = after[-1] if unit.is_root and len(after) else part[-1]
        yield Gathered(int(part[0]), int(end), unit.parameter_bytes), False
        if len(after):
            size = unit.gradient_bytes + (0 if unit.is_root else unit.parameter_bytes)
            yield Gathered(int(after[0]), int(after[-1]), size), True
