"""Captures the calls that torch's observer reports, which changes nothing of what runs (nbkit/capture/native).

The library makes the records of usual calls itself.
"""

from threading import get_ident
from typing import Any, Protocol
from uuid import uuid4

import torch

from nbkit.capture.calls.collectives import RUNS
from nbkit.capture.calls.memory import NativeContents, Span
from nbkit.capture.calls.state import call_state
from nbkit.capture.calls.taking import CallTaker, Taken, encoded_call, needs_no_values
from nbkit.capture.operators.intercept import Intercepted, InterceptMode
from nbkit.capture.raw.recording import current_node
from nbkit.capture.replay.op_traits import OpTraits, traits_of
from nbkit.ops.families import OVERWRITING, RESIZING, UNFILLED
from nbkit.trace.calls.layout import encode

CAUGHT = "calls that ended with an error which the step caught"
# What stands in a text for the number of a tensor, in a way that no argument can have.
MARK = f"nbkit {uuid4().hex}"
Begun = tuple[Intercepted, Taken]


class Captures(Protocol):
    """Saves calls: what Capturing does with those that a dispatch mode intercepts as well."""

    mode: InterceptMode
    taker: CallTaker

    def begin(self, call: Intercepted) -> Taken | None: ...
    def begin_again(self, call: Intercepted, names: list[str], spans: tuple[Span, ...]) -> Taken | None: ...
    def end(self, call: Intercepted, taken: Taken, out: Any) -> None: ...
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

    def describe(self, func: Any) -> tuple[bool, bool, bool, bool, bool, list[int], str]:
        """Returns what the library needs to know of an op: CaptureTraits in calls/capture_traits.h."""
        traits = traits_of(func)
        arguments = func._schema.arguments
        named = [number for number, one in enumerate(arguments) if one.kwarg_only and one.name in traits.written_names]
        return (
            traits.packet in UNFILLED,
            self._is_usual(traits),
            needs_no_values(traits),
            traits.is_random,
            traits.is_out or traits.packet in OVERWRITING,
            [*traits.written, *named],
            traits.name,
        )

    def _is_usual(self, traits: OpTraits) -> bool:
        """Returns whether a record follows from the arguments before the call and after it."""
        is_left_out = self.captures.mode.scope.leaves_out(traits) is not None
        return not (is_left_out or traits.packet in RESIZING or traits.name in RUNS)

    def argument_texts(self, args: Any, kwargs: Any) -> list[str]:
        """Returns the JSON of arguments, split where the numbers of tensors stand; generators count from 0."""
        generators: list[torch.Generator] = []

        def add(value: Any) -> Any:
            if not isinstance(value, torch.Generator):
                return MARK
            generators.append(value)
            return len(generators) - 1

        return encode(encoded_call(args, kwargs, add))[1:-1].split(f'"{MARK}"')

    def state_text(self) -> str:
        """Returns what differs now from what was set when the recording began, as JSON that follows other entries."""
        state = self.captures.taker.changed(call_state())
        return f',"state":{encode(state)}' if state else ""

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

    def after(self, begun: Begun | None, out: Any) -> None:
        """Saves a call that has run."""
        if begun is not None:
            call, taken = begun
            call.slot = self._slot()
            self.captures.end(call, taken, out)

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
