"""Holds the frames of one recording and what is known about it as a whole."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

import pandas as pd

from nbkit.errors import SchemaError, TraceError, nearest
from nbkit.graphs.overlay import By, Colored, How, overlay_of
from nbkit.progress import Progress
from nbkit.schema import OPS, TABLES, TENSORS
from nbkit.step.step import Step
from nbkit.trace import storage
from nbkit.trace.captured_values import CapturedCall
from nbkit.trace.export.chrome_trace import write_chrome_trace
from nbkit.trace.export.speedscope import write_speedscope


class Presenter(Protocol):
    """Shows a trace; the package root installs the one of the views layer."""

    def summary(self, trace: "Trace") -> str: ...

    def brief(self, trace: "Trace", tokens: int, form: str) -> str: ...

    def mimebundle(self, trace: "Trace") -> tuple[dict[str, Any], dict[str, Any]]: ...

    def shower(self, trace: "Trace") -> Callable[[], None] | None: ...

    def in_marimo(self, trace: "Trace") -> Any: ...


class Trace:
    """Holds one recording: pandas frames by name (`trace.ops`, `trace.tensors`, ...) and `trace.meta`.

    `meta` is JSON data: verb, name, created, versions, devices, complete, error, skipped (reason -> count), wall_us,
    recorder ("observer" or "python"), recorder_us, notes and counts. Frames have the columns of
    `nbkit.schema`. `captured` holds, by op_id, the calls whose values opdiff captured; see `nbkit.call_of`.
    """

    presenter: Presenter | None = None

    def __init__(
        self,
        frames: Mapping[str, pd.DataFrame] = {},
        meta: Mapping[str, Any] = {},
        captured: Mapping[int, CapturedCall] = {},
    ) -> None:
        self.frames: dict[str, pd.DataFrame] = {}
        self.meta: dict[str, Any] = {}
        self.captured: dict[int, CapturedCall] = dict(captured)
        if not isinstance(frames, Mapping):
            raise SchemaError(
                f"A trace is made of frames by name, and this is a {type(frames).__name__}; "
                f"give such as {{'ops': ops}}, or a path to nbkit.load()."
            )
        if unknown := [name for name in frames if name not in TABLES]:
            raise SchemaError(f"There is no frame {unknown[0]!r}; {nearest(unknown[0], TABLES)}")
        self._fill({name: TABLES[name].check(frame) for name, frame in frames.items()}, meta)

    def _fill(self, frames: Mapping[str, pd.DataFrame], meta: Mapping[str, Any]) -> None:
        """Takes over the result of a recording that was announced as this object when it began; the tests check it."""
        self.frames.update(frames)
        self.meta.update(meta)

    def copy_with(self, frames: Mapping[str, pd.DataFrame], meta: Mapping[str, Any]) -> "Trace":
        """Returns a trace of its kind with other frames and meta."""
        return Trace(frames, meta, self.captured)

    def __getattr__(self, name: str) -> pd.DataFrame:
        frames: dict[str, pd.DataFrame] = self.__dict__.get("frames", {})
        if name in frames:
            return frames[name]
        if name in TABLES and not frames:
            raise AttributeError(f"This trace has no frames yet: {name!r} is there once its recording has ended.")
        raise AttributeError(f"A trace has no {name!r}; {nearest(name, frames)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.frames]

    @property
    def complete(self) -> bool:
        """Returns whether the recorded code ran to its end."""
        return bool(self.meta.get("complete", False))

    def save(self, path: str | Path, *, values: Literal["captured"] | None = None) -> Path:
        """Writes the trace as a folder: a Parquet file per frame and meta.json; returns the folder's path.

        `values="captured"` writes the values of `captured` with it, which stay in this process otherwise.

        Each of several processes (torchrun) writes to a folder of its own in it, `rank=N`.

        A trace that is already there is replaced, once the new one is whole; folders above that are missing are made.
        Raises TraceError if `path` is something else, or cannot be written; nothing half-written is left under that
        name.
        """
        if values not in (None, "captured"):
            raise TraceError(f"values={values!r} cannot be saved; give 'captured', or None for frames and meta alone.")
        with Progress(lambda: f"saving {Path(path).name}: {sum(map(len, self.frames.values())):,} rows"):
            return storage.write(Path(path), self.frames, self.meta, self.captured if values else {})

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Returns the trace saved at `path`. Raises TraceError if that is absent, damaged or of a newer schema."""
        return cls(*storage.read(Path(path)))

    def export_chrome_trace(self, path: str | Path) -> Path:
        """Writes a Chrome trace (ui.perfetto.dev, chrome://tracing), gzipped if `path` ends in .gz; returns its path.

        `nbkit.load()` reads the frames `ops`, `memory`, `modules`, `timings` and `collectives` back as they are. Raises
        TraceError if it cannot be written, or if ops have no times.
        """
        return write_chrome_trace(self.ops, self.frames, self.meta, path)

    def export_speedscope(self, path: str | Path) -> Path:
        """Writes a file for speedscope.app, a profile per thread and stream; returns its path. Raises TraceError."""
        return write_speedscope(self.ops, self.meta, path)

    def color_by(
        self,
        frame: Colored | None,
        column: str | None = None,
        *,
        how: How | None = None,
        by: By | None = None,
    ) -> "Trace":
        """Returns this graph colored by a column of any frame, joined by `op_id`, `module` or `node_id`.

        The colors are shown by widget and report, and are saved with the trace: its frame `overlay` has the values.
        `color_by(None)` returns the graph without them.

        Args:
            frame: such as `trace.ops`, `trace.diffs`, what `nbkit.by_module_tree()` or `compare_times()` returns, or
                your own. In a graph that has its modules once for each phase, a row colors that of its column `phase`,
                without such a column that of the forward. Two graphs that are compared take a pair of frames, (left,
                right), each with the values of its own side, None for a side without; one scale is for both.
            column: numbers, texts or booleans. The unit is taken from the name: `_us`, `_ms`, `_bytes`, `_fraction`.
            how: what a box has of several rows, its own and those of all that is in it: "sum", "max", "min" or "mean".
                Usually the sum of times, sizes and counts, and the largest of all else, such as ratios and errors. A
                column that counts what is below a module already, such as `total_time_us` or `params` of a frame with
                one row per module, is not summed again. Of texts a box has its own one, else the one that all have.
            by: "module", "op_id" or "node_id". The last is usual for frames of a graph, such as its own `nodes`, and
                "op_id" where it is there and the graph is of a recorded step.

        Raises:
            OptionError: if the frame has no such column, or nothing in it joins, or it is ambiguous.
        """
        frames = {name: held for name, held in self.frames.items() if name != "overlay"}
        meta = {name: value for name, value in self.meta.items() if name != "overlay"}
        if frame is None:
            return Trace(frames, meta, self.captured)
        overlay, made = overlay_of(frames, meta, frame, str(column), how=how, by=by)
        return Trace({**frames, "overlay": overlay}, {**meta, "overlay": made}, self.captured)

    def summary(self) -> str:
        """Returns text: what ran, the brief with its first findings, slowest ops and modules, what was skipped."""
        return self.presenter.summary(self) if self.presenter else repr(self)

    def brief(self, tokens: int = 1500, *, form: Literal["text", "markdown", "json"] = "text") -> str:
        """Returns what ran, the verdict, the findings, the worst first, and what was not looked at.

        A finding has its module, step, line and what to do. The brief takes about `tokens` tokens of a language model
        at most: findings that do not fit are counted. Raises OptionError on another `form`.
        """
        return self.presenter.brief(self, tokens, form) if self.presenter else repr(self)

    def __repr__(self) -> str:
        rows = ", ".join(f"{len(frame)} {name}" for name, frame in self.frames.items()) or "still recording"
        return (
            f"<Trace {self.meta.get('name', '')!r}: {rows}{'' if self.complete or not self.frames else ', incomplete'}>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.presenter is None or not self.frames:
            return {"text/plain": repr(self)}, {}
        return self.presenter.mimebundle(self)

    @property
    def _ipython_display_(self) -> Callable[[], None] | None:
        """Returns what shows it as several outputs; null where `_repr_mimebundle_` does."""
        return self.presenter.shower(self) if self.presenter is not None and self.frames else None

    def _display_(self) -> Any:
        """Returns what marimo shows, which asks for it by this name."""
        return repr(self) if self.presenter is None or not self.frames else self.presenter.in_marimo(self)


_STEPS: WeakKeyDictionary[Trace, Step] = WeakKeyDictionary()


def step_of(trace: Trace) -> Step:
    """Returns the step that a trace holds, made once for as long as its frames are the same objects.

    A frame that the trace does not have is empty.
    """
    ops, tensors = (trace.frames.get(table.name, table.frame()) for table in (OPS, TENSORS))
    step = _STEPS.get(trace)
    if step is None or step.ops is not ops or step.tensors is not tensors:
        step = _STEPS[trace] = Step(ops, tensors)
    return step
