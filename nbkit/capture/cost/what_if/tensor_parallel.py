"""Works out what one rank costs where ranks split pairs of Linear layers, as in Megatron-LM (arXiv:1909.08053)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import pandas as pd
from torch import Tensor, nn

from nbkit.capture.cost.storages import GRADIENT, PARAMETER, STATE
from nbkit.capture.cost.what_if.ranks import of_one_rank
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace


class Pair(NamedTuple):
    """Names Linear layers that are split by columns, and the one after them that is split by rows."""

    columns: tuple[str, ...]
    row: str


@dataclass(frozen=True)
class _Split:
    """Holds module paths of a model by how their ops are split."""

    columns: frozenset[str]
    rows: frozenset[str]
    between: frozenset[str]
    firsts: frozenset[str]  # of each pair the layer whose gradient of the input stands for the sum of all


def tensor_parallel(
    trace: Trace, models: Mapping[str, nn.Module], ranks: int, numbers: Mapping[int, int]
) -> tuple[Trace, frozenset[int]]:
    """Returns the trace of one of the ranks, and the ids of the parameters that are split.

    `models` are by label; `numbers` gives the allocation_id of a parameter by its id. Raises OptionError if no pair of
    layers can be split.
    """
    splits = {label: _split(_pairs(model, ranks), label, trace) for label, model in models.items()}
    parameters = frozenset(
        id(each) for label, model in models.items() for each in _split_parameters(model, splits[label])
    )
    if not parameters:
        raise OptionError(
            f"tensor_parallel={ranks} changes nothing: no Linear layers of the step go from one width to others and "
            f"back, with widths that {ranks} divides."
        )
    of_columns, of_rows, between, firsts = (
        _is_one_of(trace.costs, splits, name) for name in ("columns", "rows", "between", "firsts")
    )
    is_split = of_columns | of_rows | between
    costs = trace.costs
    shared = {name: -(-costs[name].to_numpy() // ranks) for name in ("read_bytes", "written_bytes")}
    costs = costs.assign(
        flops=costs["flops"].where(~is_split, costs["flops"] // ranks),
        **{name: np.where(is_split, values, costs[name]) for name, values in shared.items()},
    )
    is_backward = _is_backward(trace)
    sizes = _sizes(
        trace, ranks, (of_columns, of_rows, between), is_backward, _whole_parameters(models, parameters, numbers)
    )
    is_product = (trace.costs["flops"].fillna(0) > 0).to_numpy(bool)
    sums = int(trace.costs["written_bytes"].to_numpy()[of_rows & is_product & ~is_backward].sum())
    sums += _input_gradients(trace, firsts & is_product & is_backward)
    count = sum(len(split.columns) + len(split.rows) for split in splits.values())
    return of_one_rank(
        trace,
        sizes,
        (),
        {"all_reduce_bytes": -(-2 * sums * (ranks - 1) // ranks)},
        f"{count} Linear layers are split by {ranks} ranks; all measures are those of one rank.",
        costs=costs,
    ), parameters


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


def _split(pairs: Iterable[Pair], label: str, trace: Trace) -> _Split:
    """Returns how the modules of the pairs that ran are split, and those that run between their first and last ops."""
    forward = trace.costs[((trace.costs["model"] == label) & (trace.costs["phase"] == "forward")).to_numpy(bool)]
    ids = forward.groupby("module")["op_id"].agg(["min", "max"])
    ran = [pair for pair in pairs if {*pair.columns, pair.row} <= set(ids.index)]
    columns, rows = frozenset(name for pair in ran for name in pair.columns), frozenset(pair.row for pair in ran)
    between: set[str] = set()
    for pair in ran:
        is_inside = (ids["min"] > ids.loc[list(pair.columns), "min"].min()) & (ids["max"] < ids.loc[pair.row, "max"])
        between |= set(ids.index[is_inside])
    return _Split(columns, rows, frozenset(between) - columns - rows, frozenset(pair.columns[0] for pair in ran))


def _split_parameters(model: nn.Module, split: _Split) -> Iterator[Tensor]:
    for path, module in model.named_modules():
        if path in split.columns:
            yield from module.parameters(recurse=False)
        elif path in split.rows:
            yield cast(Tensor, module.weight)


def _is_one_of(costs: pd.DataFrame, splits: Mapping[str, _Split], name: str) -> np.ndarray:
    found = np.zeros(len(costs), bool)
    for label, split in splits.items():
        found |= ((costs["model"] == label) & costs["module"].isin(getattr(split, name))).to_numpy(bool)
    return found


def _is_backward(trace: Trace) -> np.ndarray:
    """Returns which ops compute gradients of their module's ops, unlike those that checkpointing runs again."""
    ops, costs = trace.ops, trace.costs
    forward = ops["forward_op_id"].iloc[costs["op_id"].to_numpy()].fillna(-1).to_numpy(np.int64)
    modules = ops["module"].to_numpy(object)[forward]
    is_same = np.array([left == right for left, right in zip(modules, costs["module"], strict=True)], bool)
    return is_same & (forward >= 0) & (costs["phase"] == "backward").to_numpy(bool)


def _sizes(
    trace: Trace,
    ranks: int,
    parts: tuple[np.ndarray, np.ndarray, np.ndarray],
    is_backward: np.ndarray,
    whole: tuple[set[int], dict[int, tuple[int, int]]],
) -> np.ndarray:
    """Returns the sizes of the storages of one rank: results of column layers and of what comes between, gradients of
    what row layers take, and of parameters those that are split, with their gradients and state.
    """
    of_columns, of_rows, between = parts
    is_split = dict(
        zip(trace.costs["op_id"], between | (of_columns & ~is_backward) | (of_rows & is_backward), strict=True)
    )
    of_layers = dict(zip(trace.costs["op_id"], of_columns | of_rows, strict=True))
    of_row = dict(zip(trace.costs["op_id"], of_rows, strict=True))
    split_numbers, by_size = whole
    storages = trace.storages
    ids = storages["op_id"].fillna(-1).to_numpy(np.int64)
    names = storages["op"].fillna("").astype(str)
    sizes = []
    for number, (kind, size, op_id, op) in enumerate(
        zip(storages["kind"], storages["size_bytes"].tolist(), ids.tolist(), names, strict=True)
    ):
        share = -(-size // ranks)
        if kind == PARAMETER:
            is_share = number in split_numbers
        elif kind == GRADIENT:
            is_bias = of_row.get(op_id, False) and op.startswith("aten.sum")
            is_share = not is_bias and (of_layers.get(op_id, False) if op_id >= 0 else number - 1 in split_numbers)
        elif kind == STATE:
            split, every = by_size.get(size, (0, 1))
            size, is_share = -(-(split * share + (every - split) * size) // every), False
        else:
            is_share = is_split.get(op_id, False)
        sizes.append(share if is_share else size)
    return np.array(sizes, np.int64)


def _whole_parameters(
    models: Mapping[str, nn.Module], split: frozenset[int], numbers: Mapping[int, int]
) -> tuple[set[int], dict[int, tuple[int, int]]]:
    """Returns the allocations of split parameters, and by the bytes of a parameter how many are split, of how many.

    The state of an optimizer is told by its size alone: of tensors of one size as many shrink as of parameters.
    """
    by_size: dict[int, tuple[int, int]] = {}
    for each in {id(one): one for model in models.values() for one in model.parameters()}.values():
        split_before, before = by_size.get(each.nbytes, (0, 0))
        by_size[each.nbytes] = split_before + (id(each) in split), before + 1
    return {numbers[one] for one in split if one in numbers}, by_size


def _input_gradients(trace: Trace, chosen: np.ndarray) -> int:
    """Returns the bytes that ops of column layers make and that are no gradients of parameters."""
    ids = set(trace.costs["op_id"].to_numpy()[chosen])
    made = trace.storages[(trace.storages["kind"] != GRADIENT).to_numpy(bool)]
    return int(made.loc[made["op_id"].isin(ids), "size_bytes"].sum())
