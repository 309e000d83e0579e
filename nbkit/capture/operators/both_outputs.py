"""Keeps what a device computes for a replaced call beside what the CPU computed in its place."""

from typing import Any

import numpy as np

from nbkit.capture.calls.capturer import CallCapturer, Values
from nbkit.capture.diff.mode import role_of
from nbkit.capture.diff.pair import flat, pieces_of
from nbkit.capture.operators.intercept import Intercepted
from nbkit.capture.replay.op_traits import draws
from nbkit.capture.replay.reference import Call, Reference, Results
from nbkit.numerics.metrics import measure_one
from nbkit.numerics.precision import precision_of
from nbkit.trace.captured_values import CapturedCall


class BothOutputs:
    """Runs the first calls on their own device, too, from copies of what they read, and keeps both results.

    Of a kept call `actual` is the device's result and `expected` the CPU's, which the step got. Raises OptionError.
    """

    def __init__(self, keep: int, keep_bytes: int) -> None:
        self.capturer = CallCapturer(keep, keep_bytes, keep_ops="*")
        self.device = Reference(lambda op, args, kwargs: op(*args, **kwargs))
        self.left = keep
        self.troubles: dict[int, str] = {}  # by `seen`

    def before(self, call: Intercepted) -> Call | None:
        """Returns copies of what a call reads, before it runs; null where no more are kept, and for random ops, which
        would draw other numbers.
        """
        if not self.left or (call.traits.is_random and draws(call.traits, call.args, call.kwargs)):
            return None
        self.left -= 1
        copies = self.device.copy(call.traits, call.args, call.kwargs)
        copies.origin = self.capturer.origin(call.args, call.kwargs)
        return copies

    def after(self, copies: Call | None, call: Intercepted, out: Any) -> None:
        """Runs the copied call on its device, and keeps both results; what goes wrong there is told, not raised."""
        if copies is None:
            return
        try:
            self._keep(copies, call, out)
        except Exception as error:
            self.troubles[call.seen] = f"the device could not run it: {type(error).__name__}: {error}"

    def _keep(self, copies: Call, call: Intercepted, out: Any) -> None:
        arguments = call.args, call.kwargs
        ours, theirs = copies.results(arguments), Results.of(call.traits, out, *arguments)
        copies.origin.has_run()
        for index, (actual, expected) in enumerate(zip(ours.all, theirs.all, strict=True)):
            role, position = role_of(theirs, index, arguments)
            dtype = str(actual.dtype).removeprefix("torch.")
            left, right = flat(actual), flat(expected)
            numbers = measure_one(pieces_of(actual), right, precision_of(dtype)) if len(left) == len(right) else ()
            row = {
                "slot": call.seen, "op": call.traits.name, "role": role, "position": position, "status": "ok",
                "dtype": dtype, "shape": str([*actual.shape]),
                "metrics": [float(column[0]) for column in numbers] or None,
            }  # fmt: skip
            self.capturer.offer(row, copies, Values(index, left, right, tuple(expected.shape)))

    def captured(self, op_ids: np.ndarray) -> tuple[dict[int, CapturedCall], dict[str, Any]]:
        """Returns the kept calls by op_id, and what meta says of them; `op_ids` are those by `seen`."""
        self.capturer.reasons |= self.troubles
        return self.capturer.captured_calls(op_ids)
