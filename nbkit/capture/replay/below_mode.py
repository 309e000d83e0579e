"""The base of the dispatch modes below the recorder's, which look at each op that it runs."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.step_mode import StepMode
from nbkit.capture.replay.isolated import timed_apart
from nbkit.capture.replay.muted_warnings import Quiet
from nbkit.capture.replay.op_traits import Plan, plan_of


class BelowMode(StepMode):
    """Knows the plan of every op, counts by reason what it leaves out, and works apart from the step."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recording = recording
        self.plans: dict[int, Plan] = {}
        self.skipped: Counter[str] = Counter()
        self.quiet = Quiet()

    def __enter__(self) -> "BelowMode":
        self.quiet.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self.quiet.__exit__(*error)

    def plan(self, func: Any) -> Plan:
        """How calls of this op are treated, worked out at the first."""
        known = self.plans.get(id(func))
        if known is None:
            known = self.plans[id(func)] = plan_of(func)
        return known

    def apart(self, work: Callable[[], Any], on_trouble: Callable[[Exception], object]) -> Any:
        """As timed_apart, and without warnings of ours."""
        return timed_apart(self.recording, lambda: self.quiet.run(work), on_trouble)
