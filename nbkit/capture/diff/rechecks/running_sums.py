"""Gradients, accumulations and norms as one running sum in a narrow dtype gives them, number by number in order.

So torch's CPU kernels add up the gradients of LayerNorm's weight and bias, of an embedding, and what index_put and
index_add accumulate. In bfloat16 such a sum stands still at some 256 times the size of what is added to it. Its norms
of float32 numbers are as many running sums as a vector holds numbers, or one.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.replay.op_traits import bound
from nbkit.capture.replay.reference import Call
from nbkit.ops.families import VECTOR_NORMS, family

Arguments = dict[str, Any]
# Longer sums are not followed: each number takes microseconds.
LONGEST = 1 << 16
# So many running sums side by side: one, or what vectors of 128 to 512 bits hold, once or in four accumulators.
LANES = (1, 4, 8, 16, 32, 64)


def running_sum(call: Call, index: int, dtype: torch.dtype) -> Tensor | None:
    """The result at a place, its sum rounded to `dtype` at every addition; None for ops not known to add so."""
    make = SUMS.get(call.traits.packet)
    return None if make is None else make(bound(call.traits.func, *call.widened()), index, dtype)


def norms(call: Call, index: int) -> Iterator[Tensor]:
    """Yields the norm of all numbers of a tensor as float32 running sums of their powers; none for other ops."""
    arguments = bound(call.traits.func, *call.widened())
    values, order = arguments.get("self"), arguments.get("ord", arguments.get("scalar", 2))
    if call.traits.packet not in VECTOR_NORMS or arguments.get("dim") is not None:
        return
    values = values[index] if isinstance(values, list | tuple) else values
    if not isinstance(values, Tensor) or values.is_complex() or order not in (1, 2, 3):
        return
    powers = values.reshape(-1).abs().pow(order).float().numpy()
    for lanes in LANES:
        whole = len(powers) // lanes * lanes
        sums = np.add.accumulate(powers[:whole].reshape(-1, lanes), axis=0, dtype=np.float32)[-1]
        total = np.add.accumulate(np.concatenate([sums, powers[whole:]]), dtype=np.float32)[-1]
        yield torch.tensor(float(total) ** (1 / order), dtype=torch.float64)


def _of_layer_norm(arguments: Arguments, index: int, dtype: torch.dtype) -> Tensor | None:
    names = [name for name, wanted in zip(("input", "weight", "bias"), arguments["output_mask"], strict=True) if wanted]
    if names[index] == "input":
        return None
    shape = arguments["normalized_shape"]
    gradient = arguments["grad_out"]
    if names[index] == "weight":
        gradient = gradient * ((arguments["input"] - arguments["mean"]) * arguments["rstd"])
    rows = gradient.reshape(-1, gradient.shape[-len(shape) :].numel())
    sums = _summed(rows.new_zeros(1, rows.shape[1]), torch.zeros(len(rows), dtype=torch.int64), rows, dtype)
    return None if sums is None else sums.reshape(shape)


def _of_embedding(arguments: Arguments, index: int, dtype: torch.dtype) -> Tensor | None:
    if arguments["scale_grad_by_freq"]:
        return None
    gradient, places = arguments["grad_output"], arguments["indices"].reshape(-1)
    rows, is_used = gradient.reshape(len(places), -1), places != arguments["padding_idx"]
    sums = rows.new_zeros(arguments["num_weights"], rows.shape[1])
    return _summed(sums, places[is_used], rows[is_used], dtype)


def _of_embedding_bag(arguments: Arguments, index: int, dtype: torch.dtype) -> Tensor | None:
    """Of bags that are summed (mode 0) or averaged (1)."""
    gradient, places, bags = arguments["grad"], arguments["indices"], arguments["offset2bag"]
    is_plain = arguments["per_sample_weights"] is None and not arguments["scale_grad_by_freq"]
    if not is_plain or arguments["mode"] > 1 or len(bags) != len(places):
        return None
    rows = gradient[bags]
    if arguments["mode"] == 1:
        rows = rows / arguments["bag_size"][bags].clamp(min=1).unsqueeze(1)
    is_used = places != arguments["padding_idx"]
    sums = rows.new_zeros(arguments["num_weights"], rows.shape[1])
    return _summed(sums, places[is_used], rows[is_used], dtype)


def _of_index_put(arguments: Arguments, index: int, dtype: torch.dtype) -> Tensor | None:
    start = arguments["self"]
    if not arguments["accumulate"]:
        return None
    where = tuple(slice(None) if chosen is None else chosen for chosen in arguments["indices"])
    places = torch.arange(start.numel()).reshape(start.shape)[where]
    added = arguments["values"].expand(places.shape)
    sums = _summed(start.reshape(-1, 1).clone(), places.reshape(-1), added.reshape(-1, 1), dtype)
    return None if sums is None else sums.reshape(start.shape)


def _of_index_add(arguments: Arguments, index: int, dtype: torch.dtype) -> Tensor | None:
    start, dim = arguments["self"], arguments["dim"]
    if not start.dim():
        return None
    first = start.movedim(dim, 0)
    added = (arguments["source"] * arguments["alpha"]).movedim(dim, 0)
    sums = _summed(first.reshape(len(first), -1).clone(), arguments["index"], added.reshape(len(added), -1), dtype)
    return None if sums is None else sums.reshape(first.shape).movedim(0, dim)


def _summed(sums: Tensor, places: Tensor, rows: Tensor, dtype: torch.dtype) -> Tensor | None:
    """Sums (n, D) to which each row (K, D) was added at its place (K), one after the other; None if that takes long."""
    order = places.argsort(stable=True)
    places, counts = places[order], places.bincount(minlength=1)
    if int(counts.max()) > LONGEST:
        return None
    starts = counts.cumsum(0) - counts
    ranks = torch.arange(len(places)) - starts[places]
    # All first rows of their places, then all second ones: no two of a turn have the same place.
    turns = ranks.argsort().split(ranks.bincount(minlength=1).tolist())
    for turn in turns:
        where = places[turn]
        sums[where] = (sums[where] + rows[order[turn]]).to(dtype).to(sums.dtype)
    return sums


SUMS: dict[str, Callable[[Arguments, int, torch.dtype], Tensor | None]] = {
    "native_layer_norm_backward": _of_layer_norm,
    "embedding_dense_backward": _of_embedding,
    **dict.fromkeys(("_embedding_bag_backward", "_embedding_bag_dense_backward"), _of_embedding_bag),
    **dict.fromkeys(family("index_put _index_put_impl _unsafe_index_put"), _of_index_put),
    **dict.fromkeys(family("index_add"), _of_index_add),
}
