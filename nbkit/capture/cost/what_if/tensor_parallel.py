"""Works out what one rank costs where ranks split pairs of Linear layers, as in Megatron-LM (arXiv:1909.08053)."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from torch import Tensor, nn

from nbkit.capture.cost.storages import GRADIENT, PARAMETER, STATE
from nbkit.capture.cost.what_if.ranks import COUNTER_BYTES, of_one_rank
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace


class Pair(NamedTuple):
    """Names Linear layers that are split by columns, and the one after them that is split by rows."""

    columns: tuple[str, ...]
    row: str


@dataclass(frozen=True)
class Ranks:
    """Holds the number of ranks, and what is known of a run.

    The allocation_id of each tensor from outside by its id, the parameter of each allocation of an optimizer's state,
    and the op_ids of what checkpoints run again.
    """

    count: int
    numbers: Mapping[int, int]
    owned: Mapping[int, Any]
    recomputed: Set[int]


@dataclass(frozen=True)
class _Rows:
    """Tells rows of costs: those of column and of row layers, those whose result is split, those of gradients."""

    of_columns: np.ndarray
    of_rows: np.ndarray
    inside: np.ndarray
    is_gradient: np.ndarray
    is_product: np.ndarray
    of_firsts: np.ndarray  # of each pair one column layer, whose gradient of the input stands for the sum of all


def tensor_parallel(trace: Trace, models: Mapping[str, nn.Module], ranks: Ranks) -> tuple[Trace, frozenset[int]]:
    """Returns the trace of one of the ranks, and the ids of the parameters that are split; `models` are by label.

    Raises OptionError if no pair of layers can be split.
    """
    pairs = {label: _that_ran(_pairs(model, ranks.count), label, trace) for label, model in models.items()}
    split = frozenset(id(each) for label, model in models.items() for each in _split_parameters(model, pairs[label]))
    if not split:
        raise OptionError(
            f"tensor_parallel={ranks.count} changes nothing: no Linear layers of the step go from one width to others "
            f"and back, with widths that {ranks.count} divides."
        )
    rows = _rows(trace, pairs, ranks)
    is_split = rows.of_columns | rows.of_rows | rows.inside
    costs = trace.costs
    factor = np.where(is_split, 1 / ranks.count, 1.0)
    factor[(costs["phase"] == "optimizer").to_numpy(bool)] = _held_fraction(models, split, ranks.count)
    costs = costs.assign(
        flops=costs["flops"].where(~is_split, costs["flops"] // ranks.count),
        **{name: np.ceil(costs[name] * factor).astype(np.int64) for name in ("read_bytes", "written_bytes")},
    )
    whole = trace.costs["written_bytes"].to_numpy()
    reduced = int(whole[rows.of_rows & rows.is_product & ~rows.is_gradient].sum())
    reduced += _input_gradients(trace, rows.of_firsts & rows.is_product & rows.is_gradient)
    layers = sum(len(pair.columns) + 1 for of_model in pairs.values() for pair in of_model)
    changed = of_one_rank(
        trace,
        _sizes(trace, rows, ranks, models, split),
        (),
        {"all_reduce_bytes": -(-2 * reduced * (ranks.count - 1) // ranks.count)},
        f"{layers} Linear layers are split by {ranks.count} ranks; all measures are those of one rank.",
        costs=costs,
    )
    return changed, split


def _pairs(model: nn.Module, ranks: int) -> list[Pair]:
    """Returns the pairs of a model, each found in the innermost module that holds all of it."""
    found: list[Pair] = []
    taken: set[str] = set()
    modules = dict(model.named_modules())
    for path in sorted(modules, key=lambda path: -path.count(".") if path else 1):
        widths = {
            name: width
            for name, module in modules.items()
            if name not in taken and _is_below(name, path) and (width := _widths(module)) is not None
        }
        inside = list(widths)
        if len(inside) < 2:
            continue
        *columns, row = inside
        back, last = widths[row]
        outs = [widths[name][1] for name in columns]
        is_pair = all(widths[name][0] == last for name in columns) and any(out % back == 0 for out in outs)
        if is_pair and not any(width % ranks for width in (*outs, back)):
            found.append(Pair(tuple(columns), row))
            taken.update(inside)
    return found


def _is_below(name: str, path: str) -> bool:
    return not path or name.startswith(f"{path}.")


def _widths(module: nn.Module) -> tuple[int, int] | None:
    """Returns the width of what a linear layer takes and returns; None for another module."""
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    if type(module).__name__ == "Conv1D":  # of transformers: its weight is (in, out)
        width_in, width_out = cast(Tensor, module.weight).shape
        return width_in, width_out
    return None


def _that_ran(pairs: Iterable[Pair], label: str, trace: Trace) -> list[Pair]:
    ran = set(trace.costs.loc[(trace.costs["model"] == label).to_numpy(bool), "module"].dropna())
    return [pair for pair in pairs if {*pair.columns, pair.row} <= ran]


def _split_parameters(model: nn.Module, pairs: Iterable[Pair]) -> Iterator[Tensor]:
    for pair in pairs:
        for path in pair.columns:
            yield from model.get_submodule(path).parameters(recurse=False)
        yield cast(Tensor, model.get_submodule(pair.row).weight)


def _rows(trace: Trace, pairs: Mapping[str, list[Pair]], ranks: Ranks) -> _Rows:
    costs = trace.costs
    layers = [(label, pair) for label, of_model in pairs.items() for pair in of_model]
    is_recomputed = costs["op_id"].isin(ranks.recomputed).to_numpy(bool)
    is_backward = (costs["phase"] == "backward").to_numpy(bool)
    is_product = (costs["flops"].fillna(0) > 0).to_numpy(bool)
    forward = ~is_backward & ~is_recomputed
    inside = np.zeros(len(costs), bool)
    for label, pair in layers:
        of_pair = forward & is_product
        starts = np.flatnonzero(of_pair & _is_of(costs, [(label, name) for name in pair.columns]))
        for end in np.flatnonzero(of_pair & _is_of(costs, [(label, pair.row)])):
            if len(before := starts[starts < end]):
                inside[before[0] : end] |= forward[before[0] : end]
                starts = starts[starts > end]
    is_gradient = is_backward & ~is_recomputed
    inside |= is_recomputed & _as_in_forward(costs, inside, forward, is_recomputed)
    of_forward = trace.ops["forward_op_id"].iloc[costs["op_id"].to_numpy()].fillna(-1).to_numpy(np.int64)
    inside |= is_gradient & np.isin(of_forward, costs["op_id"].to_numpy()[inside & ~is_gradient])
    return _Rows(
        _is_of(costs, [(label, name) for label, pair in layers for name in pair.columns]),
        _is_of(costs, [(label, pair.row) for label, pair in layers]),
        inside,
        is_gradient,
        is_product,
        _is_of(costs, [(label, pair.columns[0]) for label, pair in layers]),
    )


def _is_of(costs: pd.DataFrame, modules: Iterable[tuple[str, str]]) -> np.ndarray:
    chosen = set(modules)
    return np.array([key in chosen for key in zip(costs["model"], costs["module"], strict=True)], bool)


def _as_in_forward(
    costs: pd.DataFrame, inside: np.ndarray, forward: np.ndarray, is_recomputed: np.ndarray
) -> np.ndarray:
    """Returns for each op that runs again what `inside` holds for it: a module's ops run again in their order."""
    answers: dict[Any, list[bool]] = {}
    keys = list(zip(costs["model"], costs["module"], strict=True))
    for row in np.flatnonzero(forward):
        answers.setdefault(keys[row], []).append(bool(inside[row]))
    found = np.zeros(len(costs), bool)
    places: dict[Any, int] = {}
    for number, key in enumerate(keys):
        if not is_recomputed[number]:
            places[key] = 0
            continue
        place = places[key] = places.get(key, 0) + 1
        known = answers.get(key, [])
        found[number] = place <= len(known) and known[place - 1]
    return found


def _sizes(
    trace: Trace, rows: _Rows, ranks: Ranks, models: Mapping[str, nn.Module], split: frozenset[int]
) -> np.ndarray:
    """Returns the sizes of the storages of one rank: results of column layers and of what comes between, gradients of
    what row layers take, and of parameters those that are split, with their gradients and state.
    """
    ops = trace.costs["op_id"].to_numpy()
    shared = set(ops[(rows.inside & ~(rows.of_columns & rows.is_gradient)) | (rows.of_rows & rows.is_gradient)])
    of_layers, of_rows = set(ops[rows.of_columns | rows.of_rows]), set(ops[rows.of_rows])
    numbers = {ranks.numbers[one] for one in split if one in ranks.numbers}
    by_size = _split_by_size(models, split)
    storages = trace.storages
    ids = storages["op_id"].fillna(-1).to_numpy(np.int64).tolist()
    updates = (storages["phase"] == "optimizer").tolist()
    names = storages["op"].fillna("").astype(str)
    sizes: list[int] = []
    whole: list[int] = storages["size_bytes"].tolist()
    for number, (kind, size, op_id, op) in enumerate(zip(storages["kind"], whole, ids, names, strict=True)):
        share = -(-size // ranks.count)
        if kind == PARAMETER:
            is_share = number in numbers
        elif kind == GRADIENT:
            is_bias = op_id in of_rows and op.startswith("aten.sum")
            is_share = not is_bias and (op_id in of_layers if op_id >= 0 else number - 1 in numbers)
        elif kind == STATE and (owner := ranks.owned.get(number)) is not None:
            is_share = id(owner) in split and size > COUNTER_BYTES
        elif kind == STATE or updates[number]:
            part, every = by_size.get(size, (0, 1))
            size, is_share = int(-(-(part * share + (every - part) * size) // every)), False
        else:
            is_share = op_id in shared
        sizes.append(share if is_share else size)
    return np.array(sizes, np.int64)


def _held_fraction(models: Mapping[str, nn.Module], split: frozenset[int], count: int) -> float:
    """Returns the share of the parameters' bytes that a rank holds."""
    every = {id(each): each.nbytes for model in models.values() for each in model.parameters()}
    held = sum(size / count if number in split else size for number, size in every.items())
    return held / max(sum(every.values()), 1)


def _split_by_size(models: Mapping[str, nn.Module], split: frozenset[int]) -> dict[int, tuple[int, int]]:
    """Returns by the bytes of a parameter how many are split, of how many.

    New state of an optimizer is told by its size alone: of tensors of one size as many shrink as of parameters.
    """
    by_size: dict[int, tuple[int, int]] = {}
    for each in {id(one): one for model in models.values() for one in model.parameters()}.values():
        part, every = by_size.get(each.nbytes, (0, 0))
        by_size[each.nbytes] = part + (id(each) in split), every + 1
    return by_size


def _input_gradients(trace: Trace, chosen: np.ndarray) -> int:
    """Returns the bytes that ops of column layers make and that are no gradients of parameters."""
    ids = set(trace.costs["op_id"].to_numpy()[chosen])
    made = trace.storages[(trace.storages["kind"] != GRADIENT).to_numpy(bool)]
    return int(made.loc[made["op_id"].isin(ids), "size_bytes"].sum())
