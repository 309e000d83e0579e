"""Shows an observer the ops that an op on DTensors runs on the shards of this process."""

from collections.abc import Callable
from typing import Any

from nbkit.capture.raw.shards import are_spread, is_shape_question
from nbkit.capture.raw.step_mode import StepMode
from nbkit.capture.replay.op_traits import UNINITIALISED, traits_of

Run = Callable[..., Any]


class LocalOps(StepMode):
    """Runs each op through `around` while entered, but for those on DTensors, which torch takes apart first."""

    def __init__(self, around: Callable[[Any, Run], Run]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.around = around
        self.runners: dict[Any, Run] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if are_spread(types):
            return NotImplemented
        if is_shape_question(types) or traits_of(func).packet in UNINITIALISED:  # memory for fakes, mostly
            return func(*args, **kwargs)
        run = self.runners.get(func)
        if run is None:
            run = self.runners[func] = self.around(func, func)
        return run(*args, **kwargs)
