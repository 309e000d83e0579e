"""Answers what a step without values asks for all the same: from what is known, by computing it, or not at all."""

from collections.abc import Callable
from sys import _getframe
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.cost.fake.asked_values import AskedValues
from nbkit.capture.cost.fake.known_values import KnownValues
from nbkit.capture.cost.fake.refusals import is_of_loader
from nbkit.capture.cost.fake.unknown_number import UnknownNumber
from nbkit.capture.raw.source import location_text, user_location
from nbkit.capture.replay.copies import mapped, tensors_in
from nbkit.capture.replay.isolated import isolated
from nbkit.errors import CostError

ITEM = torch.ops.aten._local_scalar_dense.default


class Surroundings(Protocol):
    """Knows what runs around an op."""

    def is_in_optimizer(self) -> bool:
        """Returns whether an optimizer is stepping."""

    def where(self) -> str:
        """Returns the module that an op runs in, as the end of a sentence; empty outside any."""


class Asking:
    """Gives values that are known or can be computed, and counts those of data, and bounds in place of others."""

    def __init__(self, watcher: Surroundings, asked: AskedValues) -> None:
        self.watcher, self.asked, self.values = watcher, asked, KnownValues()
        self.assumed = 0  # values of optimizers that were taken as 1
        self.is_reading, self.is_unknown = False, False  # tensor.item() runs; it gave what nobody knows
        self.computed: dict[str, int] = {}  # ops and their lines that asked for values of data, with their calls
        self.bounds: dict[str, int] = {}  # the same where a bound stands for values

    def item(self, tensor: Tensor) -> Any:
        """Returns what tensor.item() gives where it is known or can be computed; None else.

        Optimizers mostly multiply by such a value, as Adafactor by the norm of a parameter: there it is 1 in the end.
        """
        is_in_optimizer = self.watcher.is_in_optimizer()
        if (value := self.values.item(tensor)) is not None:
            return value
        # A loss that is printed is not worth its forward pass.
        is_printed = self.is_reading and tensor.is_floating_point() and not is_in_optimizer
        is_left = is_printed and self.asked.way != "run" and self.asked.is_data(tensor)
        if not is_left and (asked := self.values_of(ITEM, tensor)) is not None:
            return _item(asked)
        if is_in_optimizer and tensor.dtype is not torch.bool:
            self.assumed += 1
            return 1.0 if tensor.is_floating_point() else 1
        if is_printed:
            self.is_unknown = True
            return 1.0
        return None

    def read(self, tensor: Tensor, ask: Callable[[], Any]) -> Any:
        """Returns what tensor.item() gives: an UnknownNumber where it is a float that nobody knows, as a loss is.

        It is computed where the step compares it: then it is that of a copy, which nothing has written to since.
        """
        self.is_reading, self.is_unknown = True, False
        try:
            value = ask()
        finally:
            self.is_reading = False
        if not self.is_unknown:
            return value
        refusal, place, copy = self.needs_values(ITEM), self._location(ITEM), self.asked.copied(tensor)
        known, computed = self.asked, self.computed  # the number outlives the step

        def compare() -> float:
            if copy is None or (values := known.value(copy)) is None:
                raise CostError(refusal)
            computed[place] = computed.get(place, 0) + 1
            return float(_item(values))

        return UnknownNumber(compare)

    def values_of(self, func: OpOverload, held: Any) -> Any:
        """Returns a tensor, or lists that hold some, with values that are known or can be computed; None else."""
        if (known := self.values.of(held)) is not None:
            return known
        if is_of_loader():
            return None
        asked = {id(tensor): self.asked.value(tensor) for tensor in tensors_in([held])}
        if any(values is None for values in asked.values()):
            return None
        if any(self.asked.is_data(tensor) for tensor in tensors_in([held])):
            self.count(self.computed, func)
        return mapped(held, lambda value: asked.get(id(value), value), {})

    def whole(self, tensor: Tensor, read: Callable[[Tensor], Any]) -> Any:
        """Returns what tolist() or numpy() reads of a tensor. Raises CostError where nobody knows its values."""
        values = self.values_of(ITEM, tensor)
        if values is None:
            raise CostError(self.needs_values(ITEM))
        with isolated():
            return read(values.clone())

    def count(self, counts: dict[str, int], func: OpOverload) -> None:
        place = self._location(func)
        counts[place] = counts.get(place, 0) + 1

    def _location(self, func: OpOverload) -> str:
        location = user_location(_getframe(2))
        return f"{op_name(func)}{f' ({location_text(location)})' if location is not None else ''}"

    def needs_values(self, func: OpOverload) -> str:
        if is_of_loader():
            return (
                f"A DataLoader reads values, such as its seed, and opcost knows shapes only{self.place()}; take the "
                "batch out of the recorded code: batch = next(iter(loader)) before it."
            )
        if self.asked.is_foreign:
            why = "which follow from ops that are not torch's and may do more; values='run' runs the step for them."
        elif self.asked.is_too_dear:
            why = "which take long to compute; values='run' runs the step for them."
        elif self.asked.way == "bound":
            why = "which have no bound; values='auto' computes them."
        else:
            why = (
                "which opcost cannot compute; take the branch that you mean with a value that is no tensor, or run "
                "this part outside."
            )
        return f"{op_name(func)} needs values{self.place()}, {why}"

    def place(self) -> str:
        """Returns the module and the line of what is running, as the end of a sentence."""
        location = user_location(_getframe(1))
        return self.watcher.where() + (f" at {location_text(location)}" if location is not None else "")


def op_name(func: OpOverload) -> str:
    """Names an op in a sentence."""
    name: str = func.name()
    return name.replace("::", ".")


def _item(values: Tensor) -> Any:
    with isolated():
        return values.item()
