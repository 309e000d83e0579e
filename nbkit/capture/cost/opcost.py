"""Says what a step costs before it runs (opcost)."""

from collections.abc import Callable
from typing import Literal

from nbkit.capture.cost.device_option import device_of
from nbkit.capture.cost.fake.asked_values import WAYS
from nbkit.capture.cost.observer import CostObserver
from nbkit.capture.recorder.recorder import Recorder
from nbkit.devices.device import Device
from nbkit.errors import OptionError, nearest
from nbkit.trace.checks import check_step
from nbkit.trace.trace import Trace


class opcost(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Counts FLOPs, bytes and memory of the step inside it without running it; gives a Trace, filled at exit.

    The step runs on shapes alone (torch's FakeTensorMode): forward, backward and optimizer. Real models and tensors are
    taken as they are and left as they are, nothing is computed unless the step asks for values, and a model that was
    made inside, or on the meta device, may be larger than the machine; `device="cuda"` and `.cuda()` count as if CUDA
    were there. `trace.costs` has a row per aten op, `storages` and `memory` say what is allocated and when it is freed,
    `saved` what is kept for the backward pass; `module_costs` has a row per module.

    Args:
        device: what to predict times for, such as "H100", or "this machine" after `nbkit.calibrate()`. They are in
            `costs.time_us`, null without a device; a `nbkit.Device` describes another.
        values: what to do where the step asks for values that depend on data (`x[mask]`, `nonzero`, `if loss > 3:`).
            "auto" computes the ops that they follow from, on copies of its tensors, if that takes less than 100 GFLOP
            and 1 GiB, and else counts the largest result that the op can have; "run" runs the whole step once on
            copies; "bound" computes what follows from constants alone. `trace.brief()` says how many, and where.
        name: what the trace is called where it is shown.

    Raises:
        OptionError: for a device that is not known or not measured, or another `values`.
        CostError: from the op that needs values that cannot be computed, or has no rule for its result's shape; the
            trace so far is kept.
    """

    verb = "opcost"

    def __init__(
        self,
        *,
        device: str | Device | None = None,
        values: Literal["auto", "run", "bound"] = "auto",
        name: str | None = None,
    ) -> None:
        if values not in WAYS:
            raise OptionError(f"values={values!r} is not known; {nearest(str(values), WAYS)}")
        observer = CostObserver(device=None if device is None else device_of(device), values=values)
        super().__init__(observer, name=name)

    def run(self, step: Callable[[], object]) -> Trace:
        """Returns the trace of `step()`. Raises OptionError for what cannot be called."""
        check_step(step)
        with self as trace:
            step()
        return trace
