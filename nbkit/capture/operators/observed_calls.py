"""Captures the calls that torch's observer reports, which changes nothing of what runs (nbkit/capture/native).

The library makes the records of calls that differ in values alone from one whose record was made here.
"""

import re
from threading import get_ident
from typing import Any, Protocol
from uuid import uuid4

from nbkit.capture.calls.collectives import RUNS
from nbkit.capture.calls.memory import NativeContents, Span
from nbkit.capture.calls.taking import Taken, needs_no_values, span_after
from nbkit.capture.operators.intercept import Intercepted, InterceptMode
from nbkit.capture.raw.recording import current_node
from nbkit.capture.recorder.op_forms import RESHAPING
from nbkit.capture.replay.op_traits import UNINITIALISED, OpTraits, traits_of
from nbkit.trace.calls.layout import Record, encode

CAUGHT = "calls that ended with an error which the step caught"
# What stands in a text for a number or a name, in a way that no argument can have.
MARK = f"nbkit {uuid4().hex} "
PLACE = re.compile(f'"{MARK}(-?[0-9]+)"')
Begun = tuple[Intercepted, Taken]
# Parts of storages by their number, named before and after: nbkit/capture/native/src/calls/known_calls.h.
Part = tuple[int, int, int]
Learned = tuple[bool, list[Part], tuple[Span, ...], list[Part], list[str], list[int]]


class Captures(Protocol):
    """Saves calls: what Capturing does with those that a dispatch mode intercepts as well."""

    mode: InterceptMode

    def begin(self, call: Intercepted) -> Taken | None: ...
    def begin_again(self, call: Intercepted, names: list[str], spans: tuple[Span, ...]) -> Taken | None: ...
    def end(self, call: Intercepted, taken: Taken, out: Any) -> Record | None: ...
    def raised(self, call: Intercepted, taken: Taken, error: BaseException) -> None: ...
    def add_lines(self, lines: bytes, ends: bytes, slots: bytes, ops: list[str], numbers: bytes) -> None: ...
    def trouble(self, call: Intercepted, error: Exception) -> None: ...


class ObservedCalls:
    """Is told of each call before and after it runs, by the library, which hands back what before() returned."""

    def __init__(self, captures: Captures, contents: NativeContents) -> None:
        self.captures = captures
        self.contents = contents.native
        self.numbers = captures.mode.scope.numbers
        self.ops = captures.mode.recording.ops
        self.encode = encode
        self.add_lines = captures.add_lines
        self.thread = get_ident()
        self.failed: Begun | None = None  # the last one that an error ended

    def describe(self, func: Any) -> tuple[bool, bool, bool, list[int], str]:
        """Returns what the library needs to know of an op: CaptureTraits in calls/known_calls.h."""
        traits = traits_of(func)
        arguments = func._schema.arguments
        named = [number for number, one in enumerate(arguments) if one.kwarg_only and one.name in traits.written_names]
        return (
            traits.packet in UNINITIALISED,
            self._is_usual(traits),
            needs_no_values(traits),
            [*traits.written, *named],
            traits.name,
        )

    def _is_usual(self, traits: OpTraits) -> bool:
        """Returns whether a record follows from the arguments before the call and after it."""
        is_left_out = self.captures.mode.scope.leaves_out(traits) is not None
        return not (is_left_out or traits.packet in RESHAPING or traits.name in RUNS)

    def before(self, func: Any, args: Any, kwargs: Any) -> Begun | None:
        """Takes what a call reads from; returns None where it is not captured."""
        if get_ident() != self.thread and current_node() is None:  # part of a collective, in a thread of its backend
            return None
        call = self._call(func, args, kwargs)
        if not self.captures.mode.is_chosen(call):
            return None
        taken = self.captures.begin(call)
        return None if taken is None else (call, taken)

    def begun_again(
        self, func: Any, arguments: tuple[Any, Any], names: list[str], spans: tuple[Span, ...], number: int
    ) -> Begun | None:
        """Returns what before() returns, of a call that has run and whose inputs have been named."""
        call = self._call(func, *arguments)
        call.number = number
        taken = self.captures.begin_again(call, names, spans)
        return None if taken is None else (call, taken)

    def after(self, begun: Begun | None, out: Any) -> Learned | None:
        """Saves a call that has run; returns how others that differ in values alone are recorded."""
        if begun is None:
            return None
        call, taken = begun
        call.slot = self._slot()
        inputs = tuple(taken.spans)
        record = self.captures.end(call, taken, out)
        return None if record is None else learned(record, taken, inputs)

    def trouble(self, func: Any, error: Exception) -> None:
        """Is told why the library could not save a call."""
        self.captures.trouble(self._call(func, (), {}), error)

    def raised(self, begun: Begun) -> None:
        """Keeps a call that an error has ended, which torch does not show its observers; the end of the step may."""
        self._caught()
        begun[0].slot = self._slot()
        self.failed = begun

    def ended(self, error: BaseException | None) -> None:
        """Saves the call whose error ended the step, if that is what ended it."""
        recording = self.captures.mode.recording
        if self.failed is not None and error is not None and self.failed[0].slot == recording.failed_slot:
            self.captures.raised(*self.failed, error)
        else:
            self._caught()
        self.failed = None

    def _caught(self) -> None:
        if self.failed is not None:
            self.captures.mode.skipped[CAUGHT] += 1

    def _call(self, func: Any, args: Any, kwargs: Any) -> Intercepted:
        return Intercepted(self.captures.mode, traits_of(func), args, kwargs, self._slot(), 0)

    def _slot(self) -> int:
        """Returns the row of the call that ends now: it is written when it has ended."""
        return int(self.ops.row_count)


def learned(record: Record, taken: Taken, inputs: tuple[Span, ...]) -> Learned | None:
    """Returns the text of a record without its number and the names of its contents, and where those come from."""
    is_default = "generator" in record  # it draws from the one of its device; else from those that it was given
    drawn = [record["generator"]] if is_default else record.get("generators", [])
    if "raised" in record or any(generator["device"] != "cpu" for generator in drawn):
        return None
    storages: list[Record] = [dict(storage) for storage in record["storages"]]
    parts: dict[str, list[Part]] = {"before": [], "after": []}
    marked = [generator | {"state": f"{MARK}{place}"} for place, generator in enumerate(drawn)]
    changed: dict[str, Any] = {"generator": marked[0]} if is_default else {"generators": marked} if marked else {}
    place = len(marked)
    for when, named in parts.items():
        for number, storage in enumerate(storages):
            if when in storage:
                span = taken.spans[number] if when == "before" else span_after(taken, number)
                named.append((number, *span))
                storage[when] = f"{MARK}{place}"
                place += 1
    texts = PLACE.split(encode({**record, **changed, "number": f"{MARK}-1", "storages": storages}))
    between = [int(what) for what in texts[1::2]]
    return is_default, parts["before"], inputs, parts["after"], texts[::2], between
