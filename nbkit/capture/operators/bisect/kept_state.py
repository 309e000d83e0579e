"""Keeps what a step changes, and puts it back before each trial."""

import copy
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from nbkit.capture.calls.thread_state import ThreadState
from nbkit.capture.watch.reached import GENERATORS, reached
from nbkit.capture.watch.state import HOLDERS, State
from nbkit.errors import OptionError


class KeptState:
    """Holds bitwise copies of the state of models, optimizers, tensors and of other objects with a state_dict.

    Tensors stay the objects they are: their values and gradients are written back. The generators of Python, numpy and
    torch, and those that `step` reaches, are part of it, as is what is set in the thread. Raises OptionError for an
    object that has no state.
    """

    def __init__(self, state: Any, step: Any = None) -> None:
        self.others: list[tuple[Any, Any]] = []
        self.thread = ThreadState()
        self.reached = reached({"": step, "state": state})
        if self.reached.queues:
            raise OptionError(
                f"the step reads {' and '.join(self.reached.queues)}, which could not be put back: the next trial "
                "would wait for an item; read what it needs before, into a list."
            )
        held: list[Any] = [*self.reached.generators]
        for value in _flat(state):
            if isinstance(value, GENERATORS):  # reached already
                continue
            if isinstance(value, nn.Module):
                held += value.modules()
            elif isinstance(value, HOLDERS):
                held.append(value)
            elif isinstance(value, Tensor):
                held.append(SimpleNamespace(tensor=value))
            elif callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None)):
                self.others.append((value, copy.deepcopy(value.state_dict())))
            else:
                raise OptionError(
                    f"state= holds a {type(value).__name__}, which has no state that could be put back; give modules, "
                    f"optimizers, tensors and objects with state_dict() and load_state_dict()."
                )
        self.kept = State(held, [], sys.maxsize, _can_keep)

    def restore(self) -> None:
        """Puts everything back as it was, random numbers last."""
        for value, kept in self.others:
            value.load_state_dict(copy.deepcopy(kept))
        self.kept.restore()


def _flat(state: Any) -> Iterator[Any]:
    if isinstance(state, Mapping):
        state = state.values()
    if isinstance(state, Tensor | nn.Module) or not isinstance(state, Iterable):
        yield state
        return
    for value in state:
        if isinstance(value, list | tuple | Mapping):
            yield from _flat(value)
        else:
            yield value


def _can_keep(tensor: Tensor) -> bool:
    """Returns whether a tensor has values to keep. Raises OptionError where they cannot be written back."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        raise OptionError(
            f"state= holds a {kind} tensor, which cannot be put back; leave its module out and make it in the step."
        )
    return not tensor.is_meta
