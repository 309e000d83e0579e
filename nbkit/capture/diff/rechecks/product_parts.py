"""The rows and columns of a matrix product that hold the elements to be checked again: most often a handful."""

from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.capture.replay.reference import Call
from nbkit.numerics.precision import Array
from nbkit.ops.families import FACTORS, MATRIX_PRODUCTS

# A part is worth its copies if the whole product is at least so many times as large.
SHARE = 2


class Part(NamedTuple):
    """A smaller product: every chosen row times every chosen column."""

    call: Call
    places: Array  # of the elements that were asked for among its results


def factors_of(traits: OpTraits) -> tuple[int, ...]:
    """Positions of the two factors of a matrix product, empty for what is none; a product of batches has 3 dimensions.

    What stands before them is added to the product, and has its shape once it is expanded.
    """
    return FACTORS[traits.packet] if traits.packet in MATRIX_PRODUCTS and not traits.written_names else ()


def part_of(call: Call, shape: tuple[int, ...], elements: Array) -> Part | None:
    """The part of a product of this shape that has these elements (their numbers); None if it is not much smaller."""
    factors = factors_of(call.traits)
    if not factors or not len(elements) or not call.is_wide or call.reference.function is not None:
        return None
    if any(one.layout is not torch.strided for one in all_tensors(call.args, call.kwargs)):
        return None
    chosen_along = [np.unique(index, return_inverse=True) for index in np.unravel_index(elements, shape)]
    sizes = tuple(len(chosen) for chosen, _ in chosen_along)
    if SHARE * prod(sizes) > prod(shape):
        return None
    *batches, rows, columns = (torch.from_numpy(chosen) for chosen, _ in chosen_along)
    indices = dict(zip(factors, ([*batches, rows, None], [*batches, None, columns]), strict=True))

    def smaller(number: int, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if number in indices:
            return _selected(value, indices[number])
        return _selected(value.expand(shape), [*batches, rows, columns])

    args = tuple(smaller(number, value) for number, value in enumerate(call.args))
    part = Call(call.reference, call.traits, args, call.kwargs, is_wide=True, in_pieces=False)
    return Part(part, np.ravel_multi_index([inside for _, inside in chosen_along], sizes))


def _selected(tensor: Tensor, indices: list[Tensor | None]) -> Tensor:
    """The chosen indices of each dimension, all of one where there are none."""
    for dim, chosen in enumerate(indices):
        if chosen is not None:
            tensor = tensor.index_select(dim, chosen.to(tensor.device))
    return tensor
