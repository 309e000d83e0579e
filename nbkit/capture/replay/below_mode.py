"""The base of the dispatch modes below the recorder's, which look at each op that it runs."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.step_mode import StepMode
from nbkit.capture.recorder.op_forms import calls_others, counting, loses_versions, taken_apart
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.capture.replay.muted_warnings import MutedWarnings
from nbkit.capture.replay.op_traits import OpTraits, traits_of


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
