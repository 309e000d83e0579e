"""Keeps what steps began with, within a limit of memory and time, so that an anomalous one can be run again."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer

from nbkit.capture.calls.autocast_cache import is_emptied
from nbkit.capture.calls.thread_state import ThreadState, thread_marks
from nbkit.capture.replay.isolated import isolated
from nbkit.capture.watch.reached import Reached, may_hold_tensors, reached
from nbkit.capture.watch.share import TimeShare
from nbkit.capture.watch.state import State, TooLargeError, holders, random_state, set_random_state

# Copies may take this share of the script's time. So few steps follow each other without one, since they tell what one
# step does not (that gradients are added up), and so many, which may have to be run again to come to one of them.
TIME_SHARE = 0.005
FEWEST_CALLS, MOST_CALLS = 3, 100
# The first step may make what a second search finds.
MOST_SEARCHES = 2
# Of the memory, what the batches of one segment may take; a longer list is a data set, no batch.
DATA_SHARE = 0.25
MOST_ITEMS = 64
CONTAINERS = (dict, list, tuple)
TOO_LARGE = (
    "No step was run again: parameters and optimizer state take more memory than may be kept; give a larger "
    "--keep-bytes."
)
DISTRIBUTED = (
    "No step was run again: this is one of several processes, which would have to run it together. "
    "`python -m nbkit run --verb opaudit` records one as it runs."
)


class Step(Protocol):
    """What is known of a step: its module, the names in it and its arguments, by which run() runs it again."""

    number: int
    module: dict[str, Any]
    names: dict[str, Any]
    values: dict[str, Any]

    def objects(self) -> Iterator[Any]: ...

    def mentioned(self) -> dict[str, Any]: ...

    def run(self) -> None: ...


class Call:
    """Holds a step with the random state that it began with: what runs between two steps may draw numbers, too.

    With it what was set in its thread. A further call of the same step goes on with the numbers that come next.
    """

    def __init__(
        self,
        step: Step,
        generators: Iterable[Any] = (),
        *,
        thread: ThreadState | None = None,
        before: "Call | None" = None,
    ) -> None:
        self.step, self.number, self.is_further = step, step.number, before is not None
        self.random = None if before is not None else random_state(generators)
        self.thread: ThreadState = (thread or ThreadState()) if before is None else before.thread
        self.is_emptied: bool = is_emptied() if before is None else before.is_emptied

    def run(self) -> None:
        """Runs it again; what it raises passes through."""
        if self.random is not None:
            set_random_state(self.random)
        with self.thread.put_back():
            if self.is_emptied:
                torch.clear_autocast_cache()
            self.step.run()

    def failure(self) -> Exception | None:
        """Runs it again; returns what it raised."""
        try:
            self.run()
        except Exception as error:
            return error
        return None


@dataclass
class Segment:
    """Holds a state, and the calls of the steps from there on, in order."""

    state: State
    calls: list[Call] = field(default_factory=list)
    data: dict[int, int] = field(default_factory=dict)  # bytes of the tensors among arguments and names, by id
    data_bytes: int = 0
    is_full: bool = False
    marks: tuple[Any, ...] = ()  # of the thread, where the last step began

    @property
    def is_long(self) -> bool:
        """Returns whether the next one may begin."""
        return self.is_full or len(self.calls) >= FEWEST_CALLS

    def add(self, step: Step, most_bytes: float) -> None:
        """Adds the next step, unless the data of all takes more than that: later ones cannot be run again."""
        if self.is_full:
            return
        is_first = not self.calls
        for names in [step.names] if step.values is step.names else [step.names, step.values]:
            for tensor in _tensors(names.values()):
                if id(tensor) not in self.data:  # what is there from the beginning may be a whole data set
                    self.data[id(tensor)] = size = 0 if is_first else tensor.nbytes
                    self.data_bytes += size
        self.is_full = self.data_bytes > most_bytes
        if not self.is_full:
            self.calls.append(Call(step, self.state.generators, thread=self._thread_now()))

    def _thread_now(self) -> ThreadState:
        """Returns what is set in the thread: read anew where its marks have changed, and for the first step."""
        marks, before = thread_marks(), self.marks
        self.marks = marks
        return self.calls[-1].thread if self.calls and marks == before else ThreadState()

    def call(self, number: int) -> Call | None:
        """Returns the call of that step; null if it is not among these."""
        return next((call for call in self.calls if call.number == number), None)


class Keeper:
    """Keeps the first segment, the last two, and those of steps that are pinned; `problem` says why it stopped."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.first: Segment | None = None
        self.recent: list[Segment] = []
        self.pinned: dict[int, Segment] = {}
        self.problem: str | None = None
        self.holders: list[Any] = []
        self.reached = Reached()
        self.searches = 0
        self.copying = TimeShare(TIME_SHARE)

    def begin(self, step: Step) -> Segment | None:
        """Notes the step that begins; returns its segment where it is the first of that."""
        if self.problem is not None:
            return None
        latest = self.recent[-1] if self.recent else None
        is_due = self.copying.is_due()
        begins = latest is None or (is_due and latest.is_long) or len(latest.calls) >= MOST_CALLS
        if begins:
            with self.copying:
                latest = self._new_segment(step, may_search=is_due)
        if latest is not None:
            latest.add(step, DATA_SHARE * self.most_bytes)
        return latest if begins else None

    def _new_segment(self, step: Step, *, may_search: bool) -> Segment | None:
        if is_distributed():
            self.problem = DISTRIBUTED
            return None
        if self.searches == 0 or (may_search and self.searches < MOST_SEARCHES):
            self.reached = reached(step.mentioned())
            self.holders = [*holders(), *self.reached.generators]
            self.searches += 1
        self.recent = self.recent[-1:]
        try:
            room = self.most_bytes - sum(segment.state.bytes for segment in self._segments())
            thread = ThreadState()
            held = [*self.holders, *step.objects(), *thread.function_modes, *thread.dispatch_modes]
            segment = Segment(State(held, [step.names, step.values], room))
        except (TooLargeError, torch.OutOfMemoryError):
            self.problem = TOO_LARGE
            self.recent = []
            return None
        self.recent.append(segment)
        self.first = self.first or segment
        return segment

    def _segments(self) -> list[Segment]:
        known = [*([self.first] if self.first else []), *self.recent, *self.pinned.values()]
        return list({id(segment): segment for segment in known}.values())

    def is_idle(self) -> bool:
        """Returns whether there are optimizers, and what they hold is now as it was when the first step began."""
        groups = [group for one in self.holders if isinstance(one, Optimizer) for group in one.param_groups]
        held = [parameter for group in groups for parameter in group["params"]]
        if self.first is None or not held:
            return False
        with isolated():
            return not any(self.first.state.change_of(one)[0] for one in held)

    def pin(self, number: int) -> None:
        """Keeps what it takes to run that step again, which ended just now."""
        for segment in self.recent:
            if segment.call(number) is not None:
                self.pinned[number] = segment

    def segment_of(self, number: int) -> Segment | None:
        """Returns the segment that holds a step; null if it is not kept."""
        return next((segment for segment in self._segments() if segment.call(number) is not None), None)


def _tensors(values: Iterable[Any], depth: int = 2) -> Iterator[Tensor]:
    for value in values:
        if not may_hold_tensors(type(value)):
            continue
        if isinstance(value, Tensor):
            if value.layout is torch.strided:
                yield value
        elif depth and isinstance(value, CONTAINERS) and len(value) <= MOST_ITEMS:
            yield from _tensors(value.values() if isinstance(value, dict) else value, depth - 1)


def is_distributed() -> bool:
    """Returns whether other processes take part in the steps."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size() > 1
    return os.environ.get("WORLD_SIZE", "1") != "1"
