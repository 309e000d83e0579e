"""Holds what a profiler saw on its clock, column by column; the common form of a live recording and of a file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.timeline.names import op_and_level

Ints = npt.NDArray[np.int64]
Texts = Sequence[str | None]
# What an event is. HOST: an op or a named block on the host; MEMORY: an allocation or a free, of no duration.
HOST, MODULE, RUNTIME, KERNEL, MEMORY = range(5)
ABSENT = -1
IDS = ("own_id", "external_id", "correlation")
TEXTS = ("name", "overload", "device", "group", "input_shapes", "input_dtypes", "input_strides", "arguments",
         "source", "own_source", "model", "module", "communication")  # fmt: skip
ONE_VALUE = ("origin_ns", "main_thread")


@dataclass
class Events:
    """Holds the events of a recording in any order; a column has one entry per event, or is None where nobody knows it.

    `name` is as the profiler writes it ("aten::mm", "autograd::engine::evaluate_function: MulBackward0"). Integers that
    are not known are -1, except for ids: 0 is no id.
    """

    name: Sequence[str]
    kind: npt.NDArray[np.int8]
    start_ns: Ints  # on any clock; the recording's start is `origin_ns`
    duration_ns: Ints
    thread: Ints  # any number that tells threads apart
    overload: Texts | None = None  # "" is the default overload, None not known
    block: Ints | None = None  # 1: a block that was named by hand, whatever its name looks like; 0: not
    sequence: Ints | None = (
        None  # autograd's sequence number: the next one in a forward op, a node's own in a backward one
    )
    forward_thread: Ints | None = None  # of a backward event: `thread` of its forward op
    forward: Ints | None = None  # index of the forward event of a backward one, where a file says so
    own_id: Ints | None = None  # id of a host op
    external_id: Ints | None = None  # of runtime calls and kernels: own_id of the op that made them
    correlation: Ints | None = None  # the same for a kernel and the runtime call that launched it
    device: Texts | None = None
    stream: Ints | None = None
    flops: Ints | None = None  # 0 or less is not known
    size_bytes: Ints | None = None  # moved bytes; of MEMORY the bytes allocated (any sign, so it has no "not known")
    allocated_bytes: Ints | None = None  # of MEMORY: all bytes on the device after it
    address: Ints | None = None  # of MEMORY
    group: Texts | None = None
    communication: Texts | None = None  # what a file tells of a collective
    input_shapes: Texts | None = None
    input_dtypes: Texts | None = None
    input_strides: Texts | None = None
    arguments: Texts | None = None
    source: Texts | None = None
    own_source: Texts | None = None
    model: Texts | None = None  # of MODULE, with the two below
    module: Texts | None = None
    module_call: Ints | None = None
    origin_ns: int | None = None  # None: the start of the first event
    main_thread: int | None = None  # which `thread` is number 0; None: that of the first event

    def __len__(self) -> int:
        return len(self.kind)

    def at(self, rows: Ints) -> "Events":
        """Returns these events only, in this order; `forward` then counts in the new order."""
        chosen: dict[str, Any] = {}
        for field in fields(self):
            column = getattr(self, field.name)
            if isinstance(column, np.ndarray):
                column = column[rows]
            elif isinstance(column, list | tuple):
                column = [column[row] for row in rows.tolist()]
            chosen[field.name] = column
        if self.forward is not None:
            new_index = np.full(len(self) + 1, ABSENT, dtype=np.int64)  # the last entry answers for -1
            new_index[rows] = np.arange(len(rows))
            chosen["forward"] = new_index[chosen["forward"]]
        return Events(**chosen)

    def and_more(self, more: "Events") -> "Events":
        """Appends `more` to these events, without `forward`; a column that only one side knows is filled up."""
        both: dict[str, Any] = {}
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(more, field.name)
            if field.name in ONE_VALUE:
                both[field.name] = mine if mine is not None else theirs
            elif (mine is None and theirs is None) or field.name == "forward":
                both[field.name] = None
            elif field.name in TEXTS:
                both[field.name] = [*self.texts(field.name), *more.texts(field.name)]
            else:
                both[field.name] = np.concatenate([self.integers(field.name), more.integers(field.name)])
        return Events(**both)

    @cached_property
    def name_codes(self) -> tuple[Ints, list[str]]:
        """Returns the different names, and per event the index of its own; few, so that each is looked at once."""
        codes, different = pd.factorize(np.array(self.name, dtype=object))
        return np.asarray(codes, dtype=np.int64), [str(name) for name in different]

    def named(self, test: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
        """Returns which host events have a name that passes the test; modules never do, whatever their class."""
        codes, different = self.name_codes
        passed = np.array([test(name) for name in different], dtype=np.bool_)
        return passed[codes] & (self.kind == HOST) if len(self) else passed

    def called(self, test: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
        """Returns the same without blocks that were named by hand."""
        by_hand: npt.NDArray[np.bool_] = self.integers("block") == 1
        return self.named(test) & ~by_hand

    @cached_property
    def is_dispatcher_call(self) -> npt.NDArray[np.bool_]:
        """Returns which events are calls of the dispatcher."""
        return self.called(lambda name: op_and_level(name, None)[1] == "aten")

    def integers(self, name: str) -> Ints:
        """Returns an integer column; full of "not known" where nobody knows it."""
        column: Ints | None = getattr(self, name)
        return np.full(len(self), 0 if name in IDS else ABSENT, dtype=np.int64) if column is None else column

    def texts(self, name: str) -> Texts:
        """Returns a text column; all None where nobody knows it."""
        column: Texts | None = getattr(self, name)
        return [None] * len(self) if column is None else column
