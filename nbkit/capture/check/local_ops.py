"""Shows an observer the ops that an op on DTensors runs on the shards of this process."""

from collections.abc import Callable
from typing import Any

from nbkit.capture.raw.shards import dtensor_type, has_dtensor, has_dtensor_type, is_shape_question
from nbkit.capture.raw.step_mode import StepMode
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.op_traits import traits_of
from nbkit.ops.families import UNFILLED

Run = Callable[..., Any]


class LocalOps(StepMode):
    """Runs each op through `around` while entered, but for those on DTensors, which torch takes apart first."""

    def __init__(self, around: Callable[[Any, Run], Run]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.around = around
        self.runners: dict[Any, Run] = {}

    def taking_apart(self, run: Run, run_and_look: Run) -> Run:
        """Returns what runs an op by `run_and_look`, one on DTensors by `run` while what that calls is seen."""

        def run_or_take_apart(*args: Any, **kwargs: Any) -> Any:
            if dtensor_type() is None or not has_dtensor(all_tensors(args, kwargs)):
                return run_and_look(*args, **kwargs)
            with self:
                return run(*args, **kwargs)

        return run_or_take_apart

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if has_dtensor_type(types):
            return NotImplemented
        if is_shape_question(types) or traits_of(func).packet in UNFILLED:  # memory for fakes, mostly
            return func(*args, **kwargs)
        run = self.runners.get(func)
        if run is None:
            run = self.runners[func] = self.around(func, func)
        return run(*args, **kwargs)
