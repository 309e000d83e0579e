"""Copies inputs and results of the first calls that are wrong, bounded in number and bytes."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from nbkit.capture.calls.encode import Form, NotCapturedError, captured_tensor, encoded, form_of
from nbkit.capture.replay.copies import mapped_call
from nbkit.capture.replay.devices import device_of
from nbkit.capture.replay.reference import Call
from nbkit.errors import OptionError
from nbkit.numerics.metrics import Metrics
from nbkit.numerics.noise_ratio import RIGHT
from nbkit.numerics.precision import Array
from nbkit.patterns import Patterns, op_matcher, split_patterns
from nbkit.step.decode import sizes_of
from nbkit.trace.captured_values import CapturedCall, CapturedResult
from nbkit.trace.checks import is_number
from nbkit.trace.device_setups import watch_of

KEEP = 8
KEEP_BYTES = 64 * 2**20
# Reasons that are told op by op; beyond, only counted.
MOST_REASONS = 100


class Origin:
    """Holds what copies of a call's inputs do not tell: its arguments with forms for tensors, its device's setup."""

    def __init__(self, args: Any, kwargs: Any) -> None:
        self.args, self.kwargs = mapped_call(args, kwargs, form_of, {})
        self.device = device_of(args, kwargs)
        watch = watch_of(self.device.type)
        self._watching = watch and watch()
        self.setup: tuple[str, ...] = ()

    def has_run(self) -> None:
        """Notes that the op has run; to be called right after it."""
        if self._watching is not None:
            self.setup, self._watching = self._watching(), None

    def call(self, op: str, copies: list[Tensor]) -> tuple[CapturedCall, list[tuple[Tensor, Form]]]:
        """Returns the call without values, and its different tensors in their order, from copies of all of them."""
        remaining, forms = iter(copies), dict[int, tuple[int, Tensor, Form]]()

        def add(form: Form) -> int:
            copy = next(remaining)
            # One tensor has one form, as often as it was given.
            return forms.setdefault(id(form), (len(forms), copy, form))[0]

        args = encoded(list(self.args), add)
        kwargs = {name: encoded(value, add) for name, value in self.kwargs.items()}
        tensors = [(copy, form) for _, copy, form in forms.values()]
        return CapturedCall(-1, op, str(self.device), args, kwargs, (), (), self.setup), tensors


class Values(NamedTuple):
    """Holds a compared tensor and its reference, flat."""

    place: int
    actual: Array
    expected: Array
    expected_shape: tuple[int, ...]


class CallCapturer:
    """Keeps at most `keep` wrong calls, and as many correct ones of the ops that are asked for, in `keep_bytes`."""

    def __init__(self, keep: int = KEEP, keep_bytes: int = KEEP_BYTES, keep_ops: Patterns = None) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
            raise OptionError(f"keep must be a number of calls, got {keep!r}; give 0 to keep none, or such as {KEEP}.")
        if not is_number(keep_bytes) or keep_bytes < 0:
            raise OptionError(f"keep_bytes must be a size, got {keep_bytes!r}; give a number of bytes.")
        self.keep, self.keep_bytes = keep, keep_bytes
        self._is_asked_for = op_matcher(keep_ops) if split_patterns(keep_ops) else None
        self.calls: dict[int, CapturedCall] = {}  # by slot
        self.reasons: dict[int, str] = {}  # by slot
        self.size_bytes = 0
        self._origins: dict[int, Origin] = {}  # by slot
        self._captured: Counter[bool] = Counter()

    def origin(self, args: Any, kwargs: Any) -> Origin | None:
        """Returns what must be known of a call before it runs; None if nothing is kept."""
        return Origin(args, kwargs) if self.keep else None

    def wants(self, row: dict[str, Any]) -> bool:
        """Returns whether there is reason to keep a judged tensor."""
        if row["status"] in RIGHT:
            return self._is_asked_for is not None and self._is_asked_for(row["op"])
        return self.keep > 0

    def offer(self, row: dict[str, Any], call: Call, values: Values) -> None:
        """Keeps a judged tensor with its call, if there is reason and room to."""
        if call.origin is None or not self.wants(row):
            return
        is_wrong, slot = row["status"] not in RIGHT, row["slot"]
        try:
            if slot in self.calls:
                # An op on DTensors runs several on its shards: the first of them that is wrong is kept.
                if self._origins[slot] is call.origin:
                    self._add(slot, self.calls[slot], row, values)
            elif self._captured[is_wrong] < self.keep:
                self._add(slot, self._first(row, call), row, values)
                self._origins[slot] = call.origin
                self._captured[is_wrong] += 1
        except NotCapturedError as reason:
            self._note(slot, str(reason))
        except Exception as error:  # what is compared must not end because it cannot be kept
            self._note(slot, f"its values could not be copied ({type(error).__name__})")

    def captured_calls(self, op_ids: Any) -> tuple[dict[int, CapturedCall], dict[str, Any]]:
        """Returns the captured calls by op_id, and what meta says of them; `op_ids` is -1 for a call left out."""
        numbered = {int(op_ids[slot]): call for slot, call in sorted(self.calls.items())}
        captured = {
            op_id: CapturedCall(**{**vars(call), "op_id": op_id}) for op_id, call in numbered.items() if op_id >= 0
        }
        reasons = {str(op_ids[slot]): reason for slot, reason in sorted(self.reasons.items())}
        reasons.pop("-1", None)
        size = sum(call.size_bytes for call in captured.values())
        limits = {"keep": self.keep, "keep_bytes": self.keep_bytes}
        return captured, {"calls": len(captured), "size_bytes": size, **limits, "not_captured": reasons}

    def _first(self, row: dict[str, Any], call: Call) -> CapturedCall:
        assert call.origin is not None
        bare, tensors = call.origin.call(row["op"], call.tensors())
        self._check_room(sum(tensor.numel() * form.dtype.itemsize for tensor, form in tensors))
        return CapturedCall(**{**vars(bare), "tensors": tuple(captured_tensor(*tensor) for tensor in tensors)})

    def _add(self, slot: int, call: CapturedCall, row: dict[str, Any], values: Values) -> None:
        inputs = 0 if slot in self.calls else call.size_bytes
        size = inputs + values.actual.nbytes + values.expected.nbytes
        self._check_room(size)
        result = CapturedResult(
            values.place, row["role"], row["position"], row["dtype"], sizes_of(row["shape"]), values.expected_shape,
            _max_abs_error(row), np.array(values.actual), np.array(values.expected),
        )  # fmt: skip
        self.calls[slot] = CapturedCall(**{**vars(call), "results": (*call.results, result)})
        self.size_bytes += size

    def _check_room(self, size: int) -> None:
        if self.size_bytes + size > self.keep_bytes:
            raise NotCapturedError(f"its values need {size:,} bytes, and keep_bytes={self.keep_bytes:,} is used up")

    def _note(self, slot: int, reason: str) -> None:
        if len(self.reasons) < MOST_REASONS:
            self.reasons.setdefault(slot, reason)


def _max_abs_error(row: dict[str, Any]) -> float | None:
    metrics = row.get("metrics")
    return None if metrics is None else float(metrics[Metrics._fields.index("max_abs_error")])
