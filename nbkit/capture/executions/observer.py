"""Collects the results of a recorded step with their values: what each op reads, makes and writes."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.executions.arrays import Geometry, array_of, covers, geometry_of
from nbkit.capture.executions.calls import WRITTEN_MEMORY, Call, Held, Place, traits_for, written_by
from nbkit.capture.executions.memory import Memory
from nbkit.capture.frames.module_rows import NamedTensor, named_tensors
from nbkit.capture.frames.tensor_rows import dtype_text
from nbkit.capture.raw.arguments import describer
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.shards import local_shard
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.recorder.op_forms import is_hidden
from nbkit.capture.replay.copies import tensors_in
from nbkit.capture.replay.isolated import isolated, timed_isolated
from nbkit.capture.replay.op_traits import A_VIEW, OpTraits, bound, draws
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.capture.step.root_modules import Root
from nbkit.ops.families import OVERWRITING, UNFILLED
from nbkit.trace.executions.execution import Collector, Result
from nbkit.trace.trace import Trace

NOT_COMPILED = (
    "torch.compile made no graph: the results are those of the Python code, op by op. "
    "(torch 2.8 and older compile nothing while a recording looks on.)"
)
# Outputs that kernels fill for their own backward pass: partly, and each time with other bits.
WORKSPACES = frozenset({("mkldnn_rnn_layer", 3)})


class ExecutionObserver(Observer):
    """Adds the results of each op to a collector, and notes each call so that it can be run again."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.calls: list[Call] = []
        self.memory = Memory(self.add_outside, self._add_written)
        self.leaves: dict[int, Tensor] = {}  # tensors from outside that require gradients, by result
        self.troubles: Counter[str] = Counter()
        self.op_ids: np.ndarray = np.zeros(0, dtype=np.int64)
        self.named: list[NamedTensor] = []
        self.place: Place | None = None  # the node of the graph that runs
        self.failed: Place | None = None
        self.unknown: set[int] = set()  # results of empty() and their views: any bits
        self.labels: list[str] = []
        self.model: torch.nn.Module | None = None  # that is going to run
        self.dump: Path | None = None  # the folder that gets the graphs of torch.compile
        self.graphs: int | None = None  # how many torch.compile has made; None of what is not compiled
        self.recording = Recording()  # until a recorder gives its own
        self.describe = _describer()
        self.on_model: Callable[[torch.nn.Module], object] = lambda model: None
        self.on_leaf: Callable[[Tensor], object] = lambda leaf: None
        self.generators: dict[int, tuple[torch.Generator, Tensor]] = {}  # of the script's own, as they were at first
        self._names: Counter[str] = Counter()

    def below(self, recording: Recording, modules: ModuleCalls) -> AbstractContextManager[object]:
        self.recording, self.modules = recording, modules
        modules.roots.on_new = self.on_model
        if self.model is not None:  # else it is searched for in the variables of the user's frames
            modules.roots.roots.append(Root(self.model))
        return nullcontext()

    def around(self, func: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        if not isinstance(func, OpOverload) or is_hidden(func):
            return run
        traits = traits_for(func)

        def observed(*args: Any, **kwargs: Any) -> Any:
            call: Call | None = self._isolated(lambda: self.begin(traits, args, kwargs))
            out = run(*args, **kwargs)
            if call is not None:
                call.slot = self.recording.ops.row_count
                self._isolated(lambda: self.end(call, traits, args, kwargs, out))
            return out

        return observed

    def _isolated(self, work: Callable[[], Any]) -> Any:
        return timed_isolated(self.recording, work, self._trouble)

    def _trouble(self, error: Exception) -> None:
        self.troubles[f"{type(error).__name__}: {error}"] += 1

    def begin(self, traits: OpTraits, args: Any, kwargs: Any) -> Call:
        """Returns the call of an op with the results that it reads, before it runs."""
        written = written_by(traits, args, kwargs)
        for tensor in written:
            self.memory.keep_before(tensor)
        if traits.is_random:
            for one in (*args, *kwargs.values()):
                if isinstance(one, torch.Generator) and id(one) not in self.generators:
                    self.generators[id(one)] = one, one.get_state()
        is_unread = traits.is_out or traits.packet in OVERWRITING
        # An output may be an operand, too, as in add(x, 1, out=x): it is read where it stands as one.
        unread = {*traits.written, *traits.written_names} if is_unread and written else set()
        sources: list[int] = []

        def held(value: Any, is_read: bool) -> Any:
            if isinstance(value, Tensor):
                result = self.memory.read(value) if is_read else None
                if result is not None:
                    sources.append(result)
                return Held(result, geometry_of(value), value.device)
            if isinstance(value, list | tuple):
                return (tuple if isinstance(value, tuple) else list)(held(item, is_read) for item in value)
            return value

        held_args = tuple(held(value, place not in unread) for place, value in enumerate(args))
        held_kwargs = {name: held(value, name not in unread) for name, value in kwargs.items()}
        return Call(traits.func, held_args, held_kwargs, tuple(sources), is_random(traits, args, kwargs), self.place)

    def end(self, call: Call, traits: OpTraits, args: Any, kwargs: Any, out: Any) -> None:
        """Adds what an op has returned, and what it has written without returning it."""
        call.number = len(self.calls)
        self.calls.append(call)
        written = written_by(traits, args, kwargs)
        keys = {_key(tensor) for tensor in written}
        made = list(tensors_in(out))
        returned = {_key(tensor) for tensor in made}
        made += [tensor for tensor in written if _key(tensor) not in returned]
        name = self._name(traits.packet)
        is_view_of_nothing = traits.leave_out == A_VIEW and self.unknown.issuperset(call.sources)
        has_values = traits.packet not in UNFILLED and not is_view_of_nothing
        for position, tensor in enumerate(made):
            text = name if len(made) == 1 else f"{name}[{position}]"
            is_known = has_values and (traits.packet, position) not in WORKSPACES
            result = self._add(tensor, call, position, text, is_known)
            (self.memory.written if _key(tensor) in keys else self.memory.made)(tensor, result)

    def _name(self, packet: str) -> str:
        if self.place is not None:  # those that the node does not return; the others are named by it
            packet = f"{self.place.prefix}{self.place.node.name}/{packet}"
        number = self._names[packet]
        self._names[packet] += 1
        return f"{packet}_{number}" if number else packet

    def _add(self, tensor: Tensor, call: Call, position: int, name: str, has_values: bool = True) -> int:
        result = Result(
            -1,
            "op",
            name,
            dtype_text(tensor.dtype),
            tuple(local_shard(tensor).shape),
            call.number,
            position,
            call.sources,
            op=str(call.func),
        )
        added = self.collector.add(result, array_of(tensor) if has_values else None)
        if not has_values:
            self.unknown.add(added)
        call.results.append(added)
        call.held.append(Held(added, geometry_of(tensor), tensor.device))
        return added

    def add_outside(self, tensor: Tensor, kind: str = "constant", name: str | None = None) -> int:
        """Adds a tensor that no op has made."""
        name = self._name("constant") if name is None else name
        result = Result(-1, kind, name, dtype_text(tensor.dtype), tuple(local_shard(tensor).shape))
        added = self.collector.add(result, array_of(tensor))
        if tensor.requires_grad and tensor.is_leaf:
            self.leaves[added] = tensor
            self.on_leaf(tensor)
        return added

    def add_given(self, kind: str, name: str, tensor: Tensor) -> None:
        """Adds a tensor that has a name before the step begins; one that came before keeps its first."""
        with isolated():
            block = self.memory.block(tensor)
            if not self.memory.outside(tensor):
                result = self.add_outside(tensor, kind, name)
                block.first[geometry_of(tensor)] = result
                self.memory.made(tensor, result)

    def name_by(self, place: Place, made: Sequence[Tensor]) -> None:
        """Names what a node has made; a node that picks from what others have made names that."""
        picks = place.node.target is getitem
        with isolated():
            for position, tensor in enumerate(made):
                result = self.memory.read(tensor)
                text = place.prefix + place.node.name + (f"[{position}]" if len(made) > 1 else "")
                if picks or self._is_of(result, place):
                    self.collector.results[result] = replace(self.collector.results[result], name=text)

    def _is_of(self, result: int, place: Place) -> bool:
        number = self.collector.results[result].call
        return number is not None and self.calls[number].place is place

    def run_direct(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        """Runs an op as one call, also if it is made of others, without a dispatch mode."""
        traits = traits_for(func)
        with torch.no_grad():
            call = self.begin(traits, args, kwargs)
            out = func(*args, **kwargs)
            call.arguments = self.describe(func, args, kwargs)
            self.end(call, traits, args, kwargs, out)
        return out

    def _add_written(self, tensor: Tensor, pieces: list[tuple[Geometry, int]]) -> int:
        call = Call(WRITTEN_MEMORY, (pieces,), {}, tuple(result for _, result in pieces), False, self.place)
        call.slot, call.number = self.recording.ops.row_count, len(self.calls)
        self.calls.append(call)
        known = [geometry for geometry, result in pieces if result not in self.unknown]
        has_values = len(known) == len(pieces) or covers(known, geometry_of(tensor))
        return self._add(tensor, call, 0, self._name("written"), has_values)

    def where(self) -> str:
        """Returns the node that failed, as the end of a sentence."""
        return "" if self.failed is None else f" at {self.failed.prefix}{self.failed.node.name}"

    def notes(self) -> list[str]:
        """Returns sentences about what is missing."""
        left_out = self.collector.values.left_out
        size = [f"The values of {left_out} results were not kept: together they are too large."] if left_out else []
        eager = [NOT_COMPILED] if self.graphs == 0 and self.calls else []
        missed = [f"{count} calls of ops were not recorded ({reason})." for reason, count in self.troubles.items()]
        return [*size, *eager, *missed]

    def read(self, tensor: Tensor) -> int:
        """Returns the result that a tensor holds now."""
        with isolated():
            return self.memory.read(tensor)

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        self.op_ids = op_ids
        self.named, self.labels = list(named_tensors(self.modules)), self.modules.roots.labels()
        return {}, {}

    def forget(self) -> None:
        del self.modules
        self.recording = Recording()


def is_random(traits: OpTraits, args: Any, kwargs: Any) -> bool:
    """Returns whether what a call computes depends on random numbers; attention without dropout does not."""
    if not traits.is_random:
        return False
    return draws(traits, args, kwargs) and bound(traits.func, args, kwargs).get("train", True) is not False


def _describer() -> Callable[[Any, Any, Any], str | None]:
    described = describer(lambda reason: None)

    def text(func: Any, args: Any, kwargs: Any) -> str | None:
        found = described(func, args, kwargs)
        return None if found is None else found.text

    return text


def _key(tensor: Tensor) -> Any:
    try:
        return tensor.untyped_storage()._cdata, geometry_of(tensor)
    except RuntimeError:
        return id(tensor)
