"""Watches a training of any length as it runs (opmonitor): what `python -m nbkit audit` does while a script runs."""

from pathlib import Path
from types import TracebackType
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

from nbkit.capture.frames.build import now_text, versions
from nbkit.capture.watch.layers import LayerWatch
from nbkit.capture.watch.rows import Blocks, StepRows, limits_of
from nbkit.capture.watch.state import holders
from nbkit.capture.watch.watch import StepWatch
from nbkit.errors import OptionError
from nbkit.findings.finding import findings_frame
from nbkit.findings.steps.anomalies import AnomalyJudge, step_findings
from nbkit.schema import METRICS, PARAMETERS
from nbkit.trace.live import LiveTrace
from nbkit.trace.storage import check_save_path, of_this_process
from nbkit.trace.trace import Trace


class opmonitor:  # noqa: N801  a context manager is named like the function it stands for
    """Watches a long training, as a context manager; gives a Trace with `steps`, `metrics` and `findings`.

    A step ends where the optimizer steps that stepped first. `steps` has its loss, learning rate, time, and, where that
    costs little, gradient norm and memory; `metrics` the norms of gradients, weights and updates and the bounds of the
    output of each layer, of ever fewer steps; `findings` the steps whose loss jumps or is not finite. What runs inside
    computes the same bits as without it. No step is run again: `python -m nbkit audit` does that.

    Args:
        to: a folder that takes the rows as they come, so that memory stays as it is: `nbkit.load("FOLDER/running")`
            reads what is there at any time, also after the process was killed; in the end it is FOLDER/audit.
        name: what the trace is called where it is shown.

    Raises:
        OptionError: if another opmonitor watches already.
        TraceError: before anything runs, if `to` cannot be written.
    """

    _open: "opmonitor | None" = None

    def __init__(self, to: str | Path | None = None, *, name: str | None = None) -> None:
        self.folder = None if to is None else of_this_process(Path(to).absolute())
        if self.folder is not None:
            check_save_path(self.folder / "audit")
        self.name = name

    def __enter__(self) -> Trace:
        if opmonitor._open is not None:
            raise OptionError("An opmonitor watches already; leave that first.")
        self.meta: dict[str, Any] = {
            "verb": "opaudit", "name": self.name, "created": now_text(), "versions": versions(), "recordings": [],
        }  # fmt: skip
        self.live = None if self.folder is None else LiveTrace(self.folder, ("steps", "metrics"), self.meta)
        self.rows, self.metrics = StepRows(live=self.live), Blocks(METRICS, self.live)
        self.trace, self.watch, self.judge = Trace(), StepWatch(), AnomalyJudge()
        self.watch.layers = LayerWatch(self.metrics.append, holders)
        self.optimizer: int | None = None  # the id of the one that ends a step
        self.watch.install()
        self.hook = register_optimizer_step_post_hook(self._after_step)
        opmonitor._open = self
        self.watch.begin(0)
        return self.trace

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.optimizer = id(optimizer) if self.optimizer is None else self.optimizer
        if id(optimizer) == self.optimizer and self.watch.row is not None:
            self._end_step(None)
            self.watch.begin(len(self.rows))

    def _end_step(self, error: BaseException | None) -> None:
        row = self.watch.end(error)
        is_ended = error is not None and not isinstance(error, Exception)  # by Ctrl-C
        row["anomaly"] = None if is_ended else self.judge.judge(row)
        self.rows.append(row)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.hook.remove()
        opmonitor._open = None
        row = self.watch.row
        if error is not None or (row is not None and self.watch.losses):  # one that no optimizer has ended
            self._end_step(error)
        self.watch.remove()
        self._fill(error)
        if self.folder is not None and self.live is not None:
            self.trace.save(self.folder / "audit")
            self.live.remove()

    def _fill(self, error: BaseException | None) -> None:
        steps, metrics = self.rows.blocks.frame(), self.metrics.frame()
        limits = limits_of(self.watch, self.rows, self.metrics)
        findings = findings_frame(step_findings(steps, PARAMETERS.frame()))
        self.trace.frames.update(steps=steps, metrics=metrics, findings=findings)
        told = None if error is None else {"type": type(error).__name__, "message": str(error)}
        self.trace.meta.update(self.meta, complete=error is None, error=told, limits=limits)
