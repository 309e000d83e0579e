"""Describes an op's inputs in words: the elements behind a bad one where they are known, else each input's range."""

from collections.abc import Iterator
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.check.values import element_text, number_text, range_text
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.op_traits import OpTraits, bound
from nbkit.ops import undeclared
from nbkit.ops.families import UNTAGGED_ELEMENTWISE
from nbkit.schema.message import Message, element, joined


def read_only(traits: OpTraits, args: Any, kwargs: Any, written: list[Tensor]) -> list[Tensor]:
    """Returns the tensors of a call that it does not write to; `written` are those that its schema lets it write to."""
    if traits.packet in undeclared.WRITES and not bound(traits.func, args, kwargs).get("training", True):
        written = []  # running statistics are only read then
    return [tensor for tensor in all_tensors(args, kwargs) if not any(tensor is written_to for written_to in written)]


def numbers_in(value: Any) -> Iterator[float]:
    """Yields the numbers that are not finite among the arguments of a call."""
    if isinstance(value, float):
        if not isfinite(value):
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from numbers_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from numbers_in(item)


def inputs_text(
    traits: OpTraits,
    args: Any,
    kwargs: Any,
    written: list[Tensor],
    position: int,
    indices: list[int],
    shape: torch.Size,
) -> str:
    """Returns '; inputs there: 1, 0', or the range of each where an element is made of many; unknown ones are named."""
    if traits.packet.startswith("_foreach_"):
        args, kwargs = _items_of(args, position), {name: _item_of(value, position) for name, value in kwargs.items()}
    is_pointwise = traits.is_pointwise or traits.packet.startswith("_foreach_")
    by_element = is_pointwise or traits.packet in UNTAGGED_ELEMENTWISE
    inputs = read_only(traits, args, kwargs, written)
    elements = [element_text(tensor, indices, shape) for tensor in inputs] if by_element else [None]
    numbers = list(_numbers_text(traits, args, kwargs, is_pointwise))
    if None in elements:
        texts, label, separator = [*map(range_text, inputs), *numbers], "inputs", "; "
    else:
        texts, label, separator = [*filter(None, elements), *numbers], "inputs there", ", "
    overwrote = "; it overwrote its input" if len(inputs) < len(all_tensors(args, kwargs)) and not traits.is_out else ""
    return Message(*([f"; {label}: ", joined(separator, texts)] if texts else []), overwrote)


def _items_of(args: Any, position: int) -> tuple[Any, ...]:
    return tuple(_item_of(arg, position) for arg in args)


def _item_of(value: Any, position: int) -> Any:
    """Returns what a foreach op takes from an argument for its result number `position`."""
    return value[position] if isinstance(value, list | tuple) and position < len(value) else value


def _numbers_text(traits: OpTraits, args: Any, kwargs: Any, is_pointwise: bool) -> Iterator[str]:
    """Yields the numbers an op computes with; whole ones are sizes and dimensions unless it is elementwise."""
    names = [argument.name for argument in traits.func._schema.arguments]
    kinds = (int, float) if is_pointwise else float
    for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
        if isinstance(value, kinds) and not isinstance(value, bool):
            is_operand = is_pointwise and name in ("self", "other", "exponent", "scalar", "value")
            text = element(number_text(value))
            yield text if is_operand else Message(f"{name}=", text)
