"""Computes, where a step on shapes asks for a tensor's values, the ops that these follow from, and no others."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal
from weakref import ref

import torch
from torch import Tensor, UntypedStorage
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor

from nbkit.capture.cost.fake.absent_devices import all_here
from nbkit.capture.cost.fake.fake_mode import Alike
from nbkit.capture.cost.fake.known_values import RUN_UNASKED, repeated
from nbkit.capture.cost.fake.noted_calls import Call, Pattern, View, memory_of, numbers, written_places
from nbkit.capture.cost.storages import NO_MEMORY
from nbkit.capture.replay.copies import tensors_in
from nbkit.capture.replay.isolated import isolated

Values = Literal["auto", "run", "bound"]
WAYS = ("auto", "run", "bound")
# What is computed unasked in one step: a few seconds of one core.
MOST_FLOPS, MOST_BYTES = 10**11, 1 << 30
# A real tensor that a constant was made of is gone at once: it is copied.
MOST_CONSTANT = 1 << 16
NOTHING = object()  # in place of the pattern of calls that make and write nothing
CLONE = torch.ops.aten.clone.default


class AskedValues:
    """Notes the ops of a step, and runs on copies those that lead to values that are asked for.

    `number_at` returns the number of a memory, by the id of its storage, which no other has, or NO_MEMORY.
    With "run" each op runs at once, with "bound" only what follows from no tensor from outside and from no draw. Real
    tensors, and torch's random state, stay as they are.
    """

    def __init__(self, number_at: Callable[[int], int], way: Values) -> None:
        self.number_at, self.way = number_at, way
        self.calls: list[Call] = []
        self.is_done = bytearray()
        self.known = {NO_MEMORY}  # memories that are noted, also those whose values nobody knows
        # What follows from the calls, up to one of them: it is needed only where values are asked for.
        self.followed = 0
        self.writers: dict[int, list[int]] = {}
        self.readers: dict[int, list[int]] = {}
        self.sources: dict[int, tuple[Any, View]] = {}
        self.memories: dict[int, UntypedStorage] = {}  # with values
        self.unknown, self.copies = {NO_MEMORY}, NO_MEMORY
        self.data: set[int] = set()  # memories that follow from more than numbers, integers and masks
        self.spent_flops = self.spent_bytes = 0
        self.random: Tensor | None = None
        # Why the values asked for last were not computed, though they could be: an op with a price or of others.
        self.is_too_dear = self.is_foreign = False
        self.generators: dict[int, torch.Generator] = {}  # copies of those that the step draws from, by id

    def note(self, real: Tensor, fake: Tensor) -> None:
        """Notes a real tensor that the step takes."""
        view = self._view(fake)
        if view.number not in self.sources:
            self.known.add(view.number)
            if self.way == "bound" or (real.numel() > 1 and (real.is_floating_point() or real.is_complex())):
                self.data.add(view.number)
            with isolated():
                self.sources[view.number] = (_copied(real) if _is_constant(real) else ref(real)), view

    def record(
        self, func: OpOverload, args: Any, kwargs: Any, out: Any, flops: int, alike: Alike | None, memories: list[int]
    ) -> None:
        """Notes an op that has run on shapes, if it made or wrote something.

        `alike` is what such calls have in common; where there is such a thing, `memories` are ids of what it took.
        """
        patterns = None if alike is None else alike.patterns
        if patterns:  # results of the first such call had memories of their own
            outs = (out,) if type(out) is FakeTensor else (*tensors_in(out),)
            places = [self.number_at(memory) for memory in memories]
            places += [self.number_at(id(tensor.untyped_storage())) for tensor in outs]
            pattern = patterns.get(tuple([number in self.known for number in places[len(memories) :]]))
            if pattern is NOTHING:
                return
            if pattern is not None:
                self._add(Call(pattern, tuple(places)))
                return
        pattern, places = self._pattern(func, args, kwargs, out, flops)
        is_needed = bool(pattern.written) or any(pattern.made)
        if patterns is not None and NO_MEMORY not in places:
            patterns[tuple([view is None for view in pattern.made])] = pattern if is_needed else NOTHING
        if is_needed:
            self._add(Call(pattern, tuple(places)))

    def _pattern(self, func: OpOverload, args: Any, kwargs: Any, out: Any, flops: int) -> tuple[Pattern, list[int]]:
        """Returns what is noted of a call, and the numbers of the memories of its tensors, results last."""
        places: list[int] = []
        given, named = self._views(args, places), self._views(kwargs, places)
        taken = tuple(range(len(places)))
        written: list[int] = []
        for place in written_places(func):
            written += numbers(named.get(place) if isinstance(place, str) else given[place : place + 1])
        made = []
        for tensor in tensors_in(out):
            view = self._views(tensor, places)
            made.append(None if places[-1] in self.known else view)
        return Pattern(func, given, named, tuple(made), taken, tuple(written), flops), places

    def _add(self, call: Call) -> None:
        self.calls.append(call)
        self.is_done.append(0)
        for view in call.pattern.made:
            if view is not None:
                self.known.add(call.numbers[view.number])
        for place in call.pattern.written:
            self.known.add(call.numbers[place])
        if self.way == "run":
            self._follow()
            with self._running():
                self._run(len(self.calls) - 1)

    def _follow(self) -> None:
        """Notes of each call that is new who reads and writes which memory, and what follows from data."""
        for place in range(self.followed, len(self.calls)):
            call = self.calls[place]
            taken, written = call.taken(), call.written()
            changed = call.makes() | written
            if not self.unknown.isdisjoint(taken):
                self.unknown |= changed
            if not self.data.isdisjoint(taken) or torch.Tag.nondeterministic_seeded in call.pattern.func.tags:
                self.data |= changed
            for number in changed:
                self.writers.setdefault(number, []).append(place)
            for number in taken - written:
                self.readers.setdefault(number, []).append(place)
        self.followed = len(self.calls)

    def is_data(self, fake: Tensor) -> bool:
        """Returns whether a tensor follows from more than numbers, integers and masks, or is unknown."""
        # A loss follows from parameters, which autograd tells much sooner than the calls of the whole step.
        if (leaf := _a_leaf(fake)) is not None and self._view(leaf).number in self.data:
            return True
        self._follow()
        number = self._view(fake).number
        return number in self.data or number in self.unknown

    def forget(self, out: Any) -> None:
        """Takes results for unknown: their shapes are bounds."""
        self._follow()
        bounded = {self._view(tensor).number for tensor in tensors_in(out)}
        self.unknown |= bounded
        self.known |= bounded

    def close(self) -> None:
        """Lets go of all that was noted."""
        for noted in (self.calls, self.known, self.writers, self.readers, self.sources, self.memories):
            noted.clear()

    def gone(self, number: int) -> None:
        """Is told that a memory is gone; where every op has run already, none needs it any more."""
        if self.way == "run":
            self.memories.pop(number, None)

    def copied(self, fake: Tensor) -> View | None:
        """Returns what stands for a tensor as it is now, whatever is written to it later; null for one not noted."""
        view = self._view(fake)
        if self.way == "bound" or view.number not in self.known:
            return None
        self.copies -= 1
        copy = View(self.copies, view.dtype.itemsize, view.dtype, view.shape, (), 0)
        places = view._replace(number=0), copy._replace(number=1)
        self._add(Call(Pattern(CLONE, places[:1], {}, places[1:], (0,), (), 0), (view.number, copy.number)))
        return copy

    def value(self, fake: Tensor | View) -> Tensor | None:
        """Returns a tensor with values; None where they cannot be computed, or only at too high a price."""
        self._follow()
        view = fake if isinstance(fake, View) else self._view(fake)
        self.is_too_dear = self.is_foreign = False
        is_bound = self.way == "bound" and view.number in self.data
        needed = None if is_bound else self._needed(view.number)
        if needed is None or not self._is_paid(needed, view.number):
            return None
        with self._running():
            for place in sorted(needed):
                self._run(place)
            try:
                return view.of(self._memory(view.number))
            except LookupError:
                return None

    def _needed(self, number: int) -> set[int] | None:
        """Returns the calls that have to run before a memory has its values; None if one of them cannot.

        What reads a memory before one of them writes to it has to run before that, too: nobody could run it later.
        """
        needed: set[int] = set()
        reached: dict[int, int] = {}
        waiting = [(number, len(self.calls))]
        while waiting:
            number, end = waiting.pop()
            if reached.get(number, -1) >= end:
                continue
            reached[number] = end
            if number in self.unknown or number not in self.known:
                return None
            writers = [place for place in self.writers.get(number, ()) if place < end and not self.is_done[place]]
            before = writers[-1] if writers else 0
            readers = [place for place in self.readers.get(number, ()) if place < before and not self.is_done[place]]
            for place in {*writers, *readers} - needed:
                needed.add(place)
                taken, written = self.calls[place].taken(), self.calls[place].written()
                waiting += [(number, place) for number in taken - written]
                waiting += [(number, place + 1) for number in written]
        return needed

    def _is_paid(self, needed: set[int], number: int) -> bool:
        """Returns whether a step may take the price of these calls unasked, and adds it to what the step has spent."""
        calls = [self.calls[place] for place in needed]
        taken = {number}.union(*(call.taken() for call in calls)) & (self.sources.keys() - self.memories.keys())
        flops = self.spent_flops + sum(call.pattern.flops for call in calls)
        made = sum(view.nbytes for call in calls for view in call.pattern.made if view is not None)
        nbytes = self.spent_bytes + made + sum(self.sources[number][1].nbytes for number in taken)
        if self.way == "auto":
            self.is_foreign = any(call.pattern.func.namespace not in RUN_UNASKED for call in calls)
            self.is_too_dear = flops > MOST_FLOPS or nbytes > MOST_BYTES
            if self.is_foreign or self.is_too_dear:
                return False
        self.spent_flops, self.spent_bytes = flops, nbytes
        return True

    @contextmanager
    def _running(self) -> Iterator[None]:
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        with isolated(), torch.random.fork_rng([*devices]):
            if self.random is not None:
                torch.set_rng_state(self.random)
            yield
            self.random = torch.get_rng_state()

    def _run(self, place: int) -> None:
        """Runs a call with values; where that fails, what it makes and writes stays unknown."""
        call = self.calls[place]
        self.is_done[place] = 1
        try:
            func, args, kwargs = call.pattern[:3]
            result = func(*self._with_values(args, call.numbers), **self._with_values(kwargs, call.numbers))
            others = {self.memories[number].data_ptr() for number in call.taken()}
            # Without gradients a kernel keeps nothing for a backward pass.
            for view, value in zip(call.made(), tensors_in(result), strict=False):
                if view is None or view.number in self.memories:
                    continue
                if value.shape == view.shape:
                    self.memories[view.number] = memory_of(value, view, others)
                else:  # what a kernel keeps for itself
                    self.unknown.add(view.number)
        except Exception:  # what a kernel refuses, the step refuses when it runs
            self.unknown |= call.makes() | call.written()

    def _memory(self, number: int) -> UntypedStorage:
        """Returns a memory with values, of a real tensor a copy. Raises LookupError where nobody knows them."""
        if number in self.unknown:
            raise LookupError
        if number not in self.memories:
            source, view = self.sources[number]
            real = source if isinstance(source, Tensor) else source()
            if real is None:
                raise LookupError
            is_same = (real.shape, real.dtype) == (view.shape, view.dtype)
            if is_same and real.untyped_storage().nbytes() == view.nbytes and _has_memory(real):
                self.memories[number] = real.untyped_storage().clone()
            else:
                self.memories[number] = view.filled(real if is_same else repeated(real.detach(), view.shape))
        return self.memories[number]

    def _view(self, tensor: Tensor) -> View:
        try:
            memory = tensor.untyped_storage()
        except RuntimeError:  # a layout without a memory of its own
            memory = None
        number = NO_MEMORY if memory is None else self.number_at(id(memory))
        if memory is None or number == NO_MEMORY:
            return View(NO_MEMORY, 0, tensor.dtype, tensor.shape, (), 0)
        layout = number, memory.nbytes(), tensor.dtype, tensor.shape, tensor.stride(), int(tensor.storage_offset())
        return View(*layout, tensor.is_conj(), tensor.is_neg())

    def _views(self, held: Any, places: list[int]) -> Any:
        """Returns views in place of tensors, their numbers places in `places`, which takes those of their memories."""
        if isinstance(held, Tensor):
            view = self._view(held)
            places.append(view.number)
            return view._replace(number=len(places) - 1)
        if type(held) in (list, tuple):
            return type(held)([self._views(item, places) for item in held])
        return {name: self._views(item, places) for name, item in held.items()} if type(held) is dict else held

    def _with_values(self, held: Any, numbers: tuple[int, ...]) -> Any:
        if type(held) is View:
            return held.of(self._memory(numbers[held.number]))
        if type(held) is torch.Generator:
            return self.generators.setdefault(id(held), held.clone_state())
        if type(held) is torch.device:
            return all_here(held)
        if type(held) in (list, tuple):
            return type(held)([self._with_values(item, numbers) for item in held])
        return {name: self._with_values(item, numbers) for name, item in held.items()} if type(held) is dict else held


def _has_memory(real: Tensor) -> bool:
    """Returns whether the values of a tensor lie in its storage; a subclass with its own ops has them elsewhere."""
    return real.layout is torch.strided and type(real).__torch_dispatch__ == Tensor.__torch_dispatch__


def _a_leaf(tensor: Tensor) -> Tensor | None:
    """Returns a tensor of which autograd says that this one follows from it; None where that is not told."""
    node: Any = tensor.grad_fn
    while node is not None and not hasattr(node, "variable"):
        node = next((before for before, _ in node.next_functions if before is not None), None)
    return None if node is None else node.variable


def _is_constant(real: Tensor) -> bool:
    if real.requires_grad or not _has_memory(real):
        return False
    return real.untyped_storage().nbytes() <= MOST_CONSTANT * real.itemsize


def _copied(real: Tensor) -> Tensor:
    """Returns a copy with the whole memory of a tensor: others may be views of the rest."""
    memory = real.untyped_storage().clone()
    return real.detach().new_empty(0).set_(memory, real.storage_offset(), real.shape, real.stride())
