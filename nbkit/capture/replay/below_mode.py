"""The base of the dispatch modes below the recorder's, which look at each op that it runs."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses import FakeTensor

from nbkit.capture.raw.call_rows import CallRows
from nbkit.capture.raw.conj_neg import as_bare
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.shards import has_dtensor_type, is_shape_question
from nbkit.capture.raw.step_mode import StepMode
from nbkit.capture.recorder.op_forms import calls_others, counting, loses_versions, taken_apart
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.capture.replay.muted_warnings import MutedWarnings
from nbkit.capture.replay.op_traits import OpTraits, traits_of
from nbkit.ops.families import UNFILLED


class BelowMode(StepMode):
    """Knows the traits of every op, counts by reason what it leaves out, and works isolated from the step."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recording = recording
        self.traits_by_id: dict[int, OpTraits] = {}
        self.runners: dict[int, Callable[..., Any]] = {}
        self.skipped: Counter[str] = Counter()
        self.muted_warnings = MutedWarnings()

    def __enter__(self) -> None:
        self.muted_warnings.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self.muted_warnings.__exit__(*error)

    def traits(self, func: Any) -> OpTraits:
        """How calls of this op are treated, worked out at the first."""
        known = self.traits_by_id.get(id(func))
        if known is None:
            known = self.traits_by_id[id(func)] = traits_of(func)
        return known

    def decomposed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Runs an op that only calls others, so that this mode sees those; NotImplemented for other ops.

        Autograd takes such ops apart before they come to a dispatch mode, but for inference mode.
        """
        if not torch.is_inference_mode_enabled() or not calls_others(func):
            return NotImplemented
        return taken_apart(self, func, args, kwargs)

    def runner(self, func: Any) -> Callable[..., Any]:
        """Returns what runs an op with the version counters of what it writes to as bare."""
        if id(func) not in self.runners:
            is_counted = isinstance(func, OpOverload) and loses_versions(func)
            self.runners[id(func)] = counting(func, func) if is_counted else func
        return self.runners[id(func)]

    def isolated(self, work: Callable[[], Any], on_trouble: Callable[[Exception], object]) -> Any:
        """Runs timed_isolated() with warnings muted."""
        return timed_isolated(self.recording, lambda: self.muted_warnings.run(work), on_trouble)


class CallMode(BelowMode):
    """Hands each call that computes something to ran(); of an op on DTensors those on the shards of this process."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self.rows = CallRows(recording)
        self.slot_of_shards = -1  # of the last op on DTensors

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if has_dtensor_type(types):  # the ops that it runs on the shards of this process come next
            self.slot_of_shards = self.recording.ops.row_count
            return NotImplemented
        if (out := self.decomposed(func, args, kwargs)) is not NotImplemented:
            return out
        traits = self.traits(func)
        is_below = self.slot_of_shards == self.recording.ops.row_count
        if is_below and (is_shape_question(types) or traits.packet in UNFILLED):
            return func(*args, **kwargs)
        return self.ran(self.rows.begin(None if is_below else func), traits, args, kwargs)

    @abstractmethod
    def ran(self, seen: int, traits: OpTraits, args: Any, kwargs: Any) -> Any:
        """Returns what the step gets for a call, whose number in `rows` is `seen`; it has to run it."""

    def run(self, traits: OpTraits, args: Any, kwargs: Any) -> Any:
        """Runs a call as the bare step would, and returns what the op returns."""
        return as_bare(self.runner(traits.func), args, kwargs)


def has_no_values(tensors: Iterable[Tensor]) -> str | None:
    """Returns why a call with these tensors cannot be looked at; None where it can."""
    if any(isinstance(tensor, FakeTensor) or tensor.is_meta for tensor in tensors):
        return "tensors without values (meta, fake)"
    return "nested tensors, which have no one shape" if any(tensor.is_nested for tensor in tensors) else None
