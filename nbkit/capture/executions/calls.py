"""Holds recorded calls of ops without their tensors, and runs them once more on other values."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node

from nbkit.capture.executions.arrays import Array, Geometry, array_of, blank, fill, geometry_of, tensor_of
from nbkit.capture.replay.copies import tensors_in, with_copies
from nbkit.capture.replay.op_traits import OpTraits, bound, traits_of, written_tensors
from nbkit.step.reachable import reachable
from nbkit.trace.executions.values import Values

WRITTEN_MEMORY = "view of written memory"


# Composite ops, which an exported program may have, with running statistics that they write to when training.
STATISTICS = {"batch_norm": (3, 4), "instance_norm": (3, 4)}


class Place(NamedTuple):
    """Says which node of a graph runs: `prefix` stands before its name, `phase` is that of a compiled graph."""

    node: Node
    prefix: str = ""
    phase: str | None = None


class Held(NamedTuple):
    """Stands for a tensor of a call: its result, null where the call does not read it, and how it lay in memory."""

    result: int | None
    geometry: Geometry
    device: torch.device


@dataclass
class Call:
    """Holds one call: its op and its arguments, in which Held stands for each tensor; `held` are its results."""

    func: Any  # OpOverload, or WRITTEN_MEMORY, whose argument are the pieces in order
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    sources: tuple[int, ...]
    is_random: bool
    place: Place | None = None
    arguments: str | None = None
    number: int = -1
    slot: int = -1
    results: list[int] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)


@cache
def traits_for(func: OpOverload) -> OpTraits:
    """Returns traits_of(), also of composite ops that write."""
    traits = traits_of(func)
    if traits.packet not in STATISTICS:
        return traits
    return replace(traits, written=STATISTICS[traits.packet], written_names=("running_mean", "running_var"))


def written_by(traits: OpTraits, args: Any, kwargs: Any) -> list[Tensor]:
    """Returns the tensors that a call writes to; running statistics only when training."""
    if not traits.is_writing or not all(
        bound(traits.func, args, kwargs).get(name, True) for name in ("training", "use_input_stats")
    ):
        return []
    return written_tensors(traits, args, kwargs)


class MissingError(Exception):
    """Says that a value is neither kept nor can be computed."""


class Calls:
    """Runs recorded calls again; `values` are those of the results."""

    def __init__(self, calls: Sequence[Call], values: Values) -> None:
        self.calls, self.values = calls, values
        self.maker = {result: call for call in calls for result in call.results}

    def __call__(self, replaced: Mapping[int, Array], wanted: Sequence[int]) -> Mapping[int, Array]:
        """Returns the value of each wanted result that can be computed, where readers get the replaced values."""
        needed = self._needed(replaced, wanted)
        uses = Counter(source for number in needed for source in self.calls[number].sources)
        made: dict[int, Tensor] = {}
        answer: dict[int, Array] = {}
        asked = set(wanted)
        with torch.no_grad():
            for number in sorted(needed):
                call = self.calls[number]
                try:
                    results = self._run(call, replaced, made)
                except Exception:  # what depends on it is left out
                    results = []
                for held, tensor in zip(call.held, results, strict=False):
                    assert held.result is not None
                    if held.result in asked and (array := array_of(tensor)) is not None:
                        answer[held.result] = _copied(array)
                    if uses[held.result]:
                        made[held.result] = tensor
                for source in call.sources:
                    uses[source] -= 1
                    if not uses[source]:
                        made.pop(source, None)
        for result in asked - answer.keys():
            if result not in self.maker and (value := replaced.get(result, self.values.get(result))) is not None:
                answer[result] = value
        return answer

    def _needed(self, replaced: Mapping[int, Array], wanted: Sequence[int]) -> set[int]:
        """Returns the numbers of the calls to run: of what is wanted, and of what is changed or not kept before it."""
        changed = set(replaced)
        for call in self.calls:
            if not call.is_random and any(source in changed for source in call.sources):
                changed.update(call.results)

        def is_there(result: int) -> bool:
            return result in replaced or (result not in changed and self.values.get(result) is not None)

        def makers(results: Iterable[int]) -> list[int]:
            return [self.maker[result].number for result in results if result in self.maker]

        def before(number: int) -> list[int]:
            call = self.calls[number]
            return [] if call.is_random else makers(source for source in call.sources if not is_there(source))

        return set(reachable(makers(wanted), before))

    def _run(self, call: Call, replaced: Mapping[int, Array], made: Mapping[int, Tensor]) -> list[Tensor]:
        if call.is_random:
            return [self._tensor(held, {}, {}) for held in call.held]

        def given(value: Any) -> Any:
            if isinstance(value, Held):
                return self._tensor(value, replaced, made)
            return type(value)(map(given, value)) if type(value) in (list, tuple) else value

        if call.func == WRITTEN_MEMORY:
            return [self._put_together(call, replaced, made)]
        args, kwargs = given(call.args), {name: given(value) for name, value in call.kwargs.items()}
        traits = traits_for(call.func)
        args, kwargs = with_copies(written_by(traits, args, kwargs), args, kwargs, _laid_out_alike)
        out = list(tensors_in(call.func(*args, **kwargs)))
        out += [tensor for tensor in written_by(traits, args, kwargs) if all(tensor is not each for each in out)]
        return out

    def _tensor(self, held: Held, replaced: Mapping[int, Array], made: Mapping[int, Tensor]) -> Tensor:
        if held.result is None:
            return blank(held.geometry, held.device)
        value: Any = replaced.get(held.result)
        if value is not None and tuple(value.shape) != held.geometry.shape:
            raise MissingError
        if value is None:
            if (tensor := made.get(held.result)) is not None:
                if tensor.layout is not torch.strided:
                    return tensor
                lies = tensor.stride(), tensor.storage_offset()
                return tensor if lies == held.geometry[1:3] else tensor_of(tensor, held.geometry, held.device)
            value = self.values.get(held.result)
        if value is None:
            raise MissingError
        return tensor_of(value, held.geometry, held.device)

    def _put_together(self, call: Call, replaced: Mapping[int, Array], made: Mapping[int, Tensor]) -> Tensor:
        """Writes the parts of a memory one after the other, and returns a copy of the view that was read."""
        (pieces,), (view,) = call.args, call.held
        dtype = view.geometry.dtype
        size = max(geometry.span()[1] for geometry, _ in [*pieces, (view.geometry, 0)])
        memory = torch.zeros(-(-size // dtype.itemsize), dtype=dtype, device=view.device)
        for geometry, result in pieces:
            of_piece = geometry._replace(is_conjugate=False, is_negative=False)
            typed = memory.view(geometry.dtype) if geometry.dtype != dtype else memory
            part = self._tensor(Held(result, of_piece, view.device), replaced, made)
            fill(typed.as_strided(geometry.shape, geometry.stride or (), geometry.offset), part)
        return memory.as_strided(view.geometry.shape, view.geometry.stride or (), view.geometry.offset)


def _laid_out_alike(tensor: Tensor) -> Tensor:
    return tensor_of(tensor, geometry_of(tensor), tensor.device)


def _copied(array: Array) -> Array:
    return np.array(array, copy=True, order="C")
