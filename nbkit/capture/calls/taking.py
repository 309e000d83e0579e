"""Makes the record of one call: what it reads from before it runs, what it returns and writes to from after."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.calls.collectives import described
from nbkit.capture.calls.encode import NotCapturedError, encoded
from nbkit.capture.calls.memory import KnownContents, Memory, layout_parts, span_of, state_bytes, union
from nbkit.capture.replay.copies import all_tensors, tensors_in
from nbkit.capture.replay.devices import default_generator
from nbkit.capture.replay.op_traits import OpTraits, written_tensors
from nbkit.errors import first_line
from nbkit.ops.families import OVERWRITING, QUIET_VIEWS, RESIZING, UNFILLED
from nbkit.trace.calls.layout import Record
from nbkit.trace.captured_values import contiguous


def needs_no_values(traits: OpTraits) -> bool:
    """Returns whether what a call does follows from shapes alone: views, metadata, uninitialized memory."""
    is_view = getattr(traits.func, "is_view", False) or traits.packet in QUIET_VIEWS
    return is_view or traits.packet in UNFILLED or traits.packet in RESIZING


def encoded_call(args: Any, kwargs: Mapping[str, Any], add: Callable[[Any], Any]) -> Record:
    """Returns the arguments of a call as its record has them; `add` as in encoded(). Raises NotCapturedError."""
    record: Record = {"args": encoded(list(args), add, described)}
    if kwargs:
        record["kwargs"] = {name: encoded(value, add, described) for name, value in kwargs.items()}
    return record


@dataclass
class Taken:
    """Holds a call that is being taken: its record so far, and the storages that its tensors lie in."""

    traits: OpTraits
    arguments: tuple[Any, Any]
    record: Record
    memory_of: Callable[[Tensor], Memory]
    memories: list[Memory] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # of the storages, when they were met
    spans: list[tuple[int, int]] = field(default_factory=list)  # what is stored of each
    numbers: dict[int, int] = field(default_factory=dict)  # of storages by Memory.key
    inputs: dict[int, int] = field(default_factory=dict)  # of tensors by id
    known: dict[int, tuple[Tensor, Memory]] = field(default_factory=dict)  # of tensors by id
    input_storages: int = 0
    needs_values: bool = True
    # Of a call that has run: what its inputs were named before, and the parts of their storages that were.
    given_names: list[str] = field(default_factory=list)
    given_spans: tuple[tuple[int, int], ...] = ()

    def memory(self, tensor: Tensor) -> Memory:
        """Returns the memory of a tensor, which takes a few microseconds the first time."""
        known = self.known.get(id(tensor))
        if known is None:
            known = self.known[id(tensor)] = tensor, self.memory_of(tensor)
        return known[1]

    def number(self, tensor: Tensor) -> int:
        """Returns the number of the storage that a tensor lies in."""
        return self.numbers[self.memory(tensor).key]


class CallTaker:
    """Makes records; `contents` stores the values."""

    def __init__(self, contents: KnownContents, normal_state: Record) -> None:
        self.contents, self.normal_state = contents, normal_state

    def changed(self, state: Record) -> Record:
        """Returns what of call_state() differs from what was set when the recording began."""
        return {name: value for name, value in state.items() if self.normal_state.get(name) != value}

    def before(
        self,
        traits: OpTraits,
        args: Any,
        kwargs: Any,
        number: int,
        state: Record,
        given_names: Sequence[str] = (),
        given_spans: tuple[tuple[int, int], ...] = (),
    ) -> Taken:
        """Returns a call that is about to run; `state` is call_state(). Raises NotCapturedError, FullError, OSError.

        Of one that has run by now, its inputs have been named: the names, and the spans of their storages, are given.
        """
        record: Record = {"op": traits.name, "number": number}
        if changed := self.changed(state):
            record["state"] = changed
        record |= {"storages": [], "tensors": []}
        memory_of = self.contents.memory
        taken = Taken(traits, (args, kwargs), record, memory_of, given_names=[*given_names], given_spans=given_spans)
        tensors = all_tensors(args, kwargs)
        dense = list(_dense(tensors))
        # Sparse tensors are checked when they are made again, for which their indices must be there.
        taken.needs_values = not needs_no_values(traits) or len(dense) != len(tensors)
        self._place(taken, dense)
        generators: list[torch.Generator] = []

        def add(value: Tensor | torch.Generator) -> int:
            if isinstance(value, torch.Generator):
                generators.append(value)
                return len(generators) - 1
            if id(value) not in taken.inputs:
                taken.inputs[id(value)] = self._describe(taken, value)
            return taken.inputs[id(value)]

        record |= encoded_call(args, kwargs, add)
        taken.input_storages = len(taken.memories)
        self._take_generators(taken, generators, tensors)
        if taken.needs_values:
            self._take_inputs(taken)
        return taken

    def after(self, taken: Taken, out: Any) -> Record:
        """Returns the record of a call that has run."""
        record, written = taken.record, written_tensors(taken.traits, *taken.arguments)
        taken.known.clear()  # set_ gives a tensor other memory
        for tensor in _dense(written):
            self.contents.changed(taken.memory(tensor))
        results = [*tensors_in(out), *written]
        known = len(taken.memories)
        self._place(taken, list(_dense(results)))
        made: dict[int, int] = {}

        def add(value: Tensor) -> int:
            if id(value) not in made:
                made[id(value)] = self._describe(taken, value)
            return made[id(value)]

        record["outputs"] = encoded(list(out) if isinstance(out, list | tuple) else [out], add, described)
        if written:
            record["written"] = [[taken.inputs[id(tensor)], add(tensor)] for tensor in written]
        self._take_results(taken, written, known)
        return record

    def raised(self, taken: Taken, error: BaseException) -> Record:
        """Returns the record of a call that raised."""
        return taken.record | {"raised": f"{type(error).__name__}: {first_line(error)}"}

    def _place(self, taken: Taken, tensors: list[Tensor]) -> None:
        """Gives the storages of tensors their numbers in the call, and says which part of each is stored."""
        used: dict[int, list[tuple[int, int]]] = {}
        for tensor in tensors:
            memory = taken.memory(tensor)
            number = taken.numbers.setdefault(memory.key, len(taken.memories))
            if number == len(taken.memories):
                taken.memories.append(memory)
                taken.sizes.append(memory.size_bytes)
            used.setdefault(number, []).append(span_of(tensor))
        for number in range(len(taken.spans), len(taken.memories)):
            memory = taken.memories[number]
            used_span, is_whole = union(used[number]), needs_no_values(taken.traits)
            if number < len(taken.given_spans):
                taken.spans.append(taken.given_spans[number])
            else:
                taken.spans.append(self.contents.best_span(memory, used_span, is_whole=is_whole))
            storage: Record = {"bytes": taken.spans[number][1]}
            if memory.device.type != "cpu":
                storage["device"] = str(memory.device)
            taken.record["storages"].append(storage)

    def _describe(self, taken: Taken, tensor: Tensor) -> int:
        """Returns the number of a tensor in the record, to which it is added."""
        entry: Record = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
        if tensor.is_quantized:
            raise NotCapturedError("it has quantized tensors")
        if tensor._is_zerotensor():
            entry |= {"zeros": str(tensor.device)}
        elif tensor.layout is not torch.strided:
            entry |= {"layout": str(tensor.layout).removeprefix("torch.")}
            entry["parts"] = [self._describe(taken, part) for part in layout_parts(tensor)]
            if tensor.layout is torch.sparse_coo:
                entry["is_coalesced"] = tensor.is_coalesced()
        else:
            entry |= self._geometry(taken, tensor)
        taken.record["tensors"].append(entry)
        return len(taken.record["tensors"]) - 1

    def _geometry(self, taken: Taken, tensor: Tensor) -> Record:
        number = taken.number(tensor)
        offset = tensor.storage_offset() - taken.spans[number][0] // tensor.element_size()
        if tensor.numel() and offset < 0:
            raise NotCapturedError("its result lies outside of what it was given of a large storage")
        entry: Record = {"storage": number}
        # Kernels choose by the strides of dimensions of size 1, too, which is_contiguous() passes over.
        if tensor.stride() != contiguous(tensor.shape):
            entry["stride"] = list(tensor.stride())
        if tensor.numel() and offset:
            entry["offset"] = offset
        for name, is_set in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())):
            if is_set:
                entry[name] = True
        return entry

    def _take_generators(self, taken: Taken, generators: list[torch.Generator], tensors: list[Tensor]) -> None:
        if generators:
            taken.record["generators"] = [
                {"device": str(generator.device), "state": self._state(taken, generator)} for generator in generators
            ]
        elif taken.traits.is_random:
            device = taken.arguments[1].get("device") or next((one.device for one in tensors), torch.device("cpu"))
            generator = default_generator(torch.device(device))
            taken.record["generator"] = {"device": str(generator.device), "state": self._state(taken, generator)}

    def _state(self, taken: Taken, generator: torch.Generator) -> str:
        return taken.given_names.pop(0) if taken.given_names else self.contents.put(state_bytes(generator))

    def _take_inputs(self, taken: Taken) -> None:
        unread = self._unread(taken)
        for number, (memory, span) in enumerate(zip(taken.memories, taken.spans, strict=True)):
            if span[1] and number not in unread:
                self._name_before(taken, number, memory, span)

    def _name_before(self, taken: Taken, number: int, memory: Memory, span: tuple[int, int]) -> None:
        name = taken.given_names.pop(0) if taken.given_names else self.contents.name(memory, span)
        taken.record["storages"][number]["before"] = name

    def _unread(self, taken: Taken) -> set[int]:
        """Returns the numbers of storages that the call overwrites without reading them."""
        traits, (args, kwargs) = taken.traits, taken.arguments
        if not (traits.is_out or traits.packet in OVERWRITING):
            return set()
        written = written_tensors(traits, args, kwargs)
        # One that is given twice, as in exp(x, out=x), is read as well.
        given = Counter(map(id, all_tensors(args, kwargs))) - Counter(map(id, written))
        read = {taken.number(one) for one in _dense(all_tensors(args, kwargs)) if id(one) in given}
        # A sparse one is made again of indices that fit.
        return {taken.number(one) for one in _dense([one for one in written if one.layout is torch.strided])} - read

    def _take_results(self, taken: Taken, written: list[Tensor], known: int) -> None:
        if taken.traits.packet in UNFILLED or taken.traits.packet in RESIZING:
            return
        storages = taken.record["storages"]
        fresh = range(known, len(taken.memories))
        if fresh and not taken.needs_values:  # a view that turned out to be a copy
            for number in range(taken.input_storages):
                if taken.spans[number][1]:
                    self._name_before(taken, number, taken.memories[number], taken.spans[number])
        changed = {taken.number(tensor) for tensor in _dense(written)}
        for number in (*changed, *fresh):
            memory = taken.memories[number]
            span = span_after(taken, number)
            if span[1]:
                storages[number]["after"] = self.contents.name(memory, span)


def span_after(taken: Taken, number: int) -> tuple[int, int]:
    """Returns the part of a storage whose content a record has `after` the call: all where the op has made room."""
    size = taken.memories[number].size_bytes
    return taken.spans[number] if size == taken.sizes[number] else (0, size)


def _dense(tensors: list[Tensor]) -> Iterator[Tensor]:
    """Yields the tensors with memory, those that sparse ones are made of among them."""
    for tensor in tensors:
        if tensor._is_zerotensor():
            continue
        if tensor.layout is torch.strided:
            yield tensor
        else:
            yield from _dense(layout_parts(tensor))
