"""Intercepts chosen calls of a step below the recorder and lets a tool decide what runs in their place."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.replay.below_mode import CallMode, has_no_values
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.capture.scope.api_calls import ApiCallNames
from nbkit.capture.scope.call_scope import CallScope
from nbkit.capture.scope.filters import EVERY_PHASE, CallFilters, checked_calls, checked_phases, selection_of
from nbkit.capture.scope.module_scope import ModuleScope
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.patterns import split_patterns
from nbkit.schema import Table
from nbkit.trace.trace import Trace


@dataclass
class Intercepted:
    """Describes one call before it runs; `number` counts the op's calls from 0, `seen` those of the mode.

    `slot` is the first row of Recording.ops that it may have; by `seen`, op_ids() knows which it got. `run()` runs it
    as the bare step would, and returns what the op returns.
    """

    mode: "InterceptMode"
    traits: OpTraits
    args: Any
    kwargs: dict[str, Any]
    slot: int
    number: int
    # Kernels of recurrent layers ask whether a backward pass will follow.
    has_gradients: bool = field(default_factory=torch.is_grad_enabled)
    seen: int = -1

    def run(self) -> Any:
        """Runs the op itself."""
        return self.mode.run(self.traits, self.args, self.kwargs)

    def tensors(self) -> list[Tensor]:
        """Returns its tensors, lists flattened, keyword tensors last."""
        return all_tensors(self.args, self.kwargs)


class Interceptor(Observer):
    """Observes a recording and runs its chosen calls; each operator tool is one.

    A tool says with refuses() which calls it leaves alone, and with run() what becomes of the others.
    """

    def __init__(self, filters: CallFilters) -> None:
        self.selection, self.phases = selection_of(filters), checked_phases(filters.get("phases"))
        self.calls = checked_calls(filters.get("calls"))

    @abstractmethod
    def run(self, call: Intercepted) -> Any:
        """Returns what the step gets for the call. Runs in the step: with its modes, gradients and autocast."""

    def refuses(self, call: Intercepted) -> str | None:
        """Returns why this tool leaves the call alone; None where it takes it."""
        return None

    def is_observing(self, recording: Recording) -> bool:
        """Returns whether this tool takes the calls from torch's observer, which changes nothing of what runs."""
        return False

    def before_each(self, call: Intercepted) -> None:
        """Is told of each call that is about to run, chosen or not."""

    def leaves_out(self, traits: OpTraits) -> str | None:
        """Returns why this tool never takes an op; None where it may."""
        return traits.leave_out

    def lets_run(self, call: Intercepted) -> None:
        """Is told of each call that runs as it is, before it does."""

    @contextmanager
    def below(self, recording: Recording, modules: ModuleCalls) -> Iterator[None]:
        self.recording = recording
        names = split_patterns(self.selection.ops) + split_patterns(self.selection.exclude_ops)
        needs_api = self.phases != EVERY_PHASE or not all(name.startswith("aten.") for name in names)
        api = ApiCallNames() if needs_api else None
        is_above = self.is_observing(recording)
        module_scope = ModuleScope(recording, modules, self.selection, is_above=is_above)
        scope = CallScope(recording, module_scope, self.selection, self.phases, self.calls, api, self.leaves_out)
        self.mode = InterceptMode(recording, scope, self)
        # Where torch's observer tells of the calls, nothing is intercepted.
        with self.mode.muted_warnings if is_above else self.mode:
            if api is None:
                yield
            else:
                modules.api.below = api
                with api:
                    yield

    def op_ids(self, seen: Sequence[int], op_ids: np.ndarray) -> np.ndarray:
        """Returns the op_id of each call by its `seen`, -1 for a call that is not in `ops`."""
        return self.mode.rows.op_ids(op_ids)[np.asarray(seen, dtype=np.int64)] if len(seen) else np.zeros(0, np.int64)

    def frame(
        self, table: Table, seen: Sequence[int], ops: pd.DataFrame, op_ids: np.ndarray, columns: Mapping[str, Any]
    ) -> pd.DataFrame:
        """Returns a frame with a row for each of these calls, by `seen`, that is in `ops`; in the order of `ops`."""
        ids = self.op_ids(seen, op_ids)
        order = [number for number in np.argsort(ids, kind="stable").tolist() if ids[number] >= 0]
        places = {name: ops[name].array.take(ids[order]) for name in ("op", "module", "phase", "source")}
        own = {name: [column[number] for number in order] for name, column in columns.items()}
        return table.frame({"op_id": ids[order], **places, **own})

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        for reason, count in (+self.mode.skipped).items():
            self.recording.skip(self.skipped(reason), count)
        return {}, {}

    @abstractmethod
    def skipped(self, reason: str) -> str:
        """Returns how `meta["skipped"]` says that calls were left alone for a reason."""

    def forget(self) -> None:
        del self.recording, self.mode


class InterceptMode(CallMode):
    """Gives each chosen call to the tool; other calls run as they are, counted by the reason."""

    def __init__(self, recording: Recording, scope: CallScope, tool: Interceptor) -> None:
        super().__init__(recording)
        self.scope, self.tool = scope, tool

    def ran(self, seen: int, traits: OpTraits, args: Any, kwargs: Any) -> Any:
        call = Intercepted(self, traits, args, kwargs, self.recording.ops.row_count, 0, seen=seen)
        return self.tool.run(call) if self.is_chosen(call) else call.run()

    def is_chosen(self, call: Intercepted) -> bool:
        """Numbers a call that is about to run; returns whether it is the tool's, and counts the reason if it is not."""
        self.tool.before_each(call)
        tensors = call.tensors()
        reason = self.scope.why_not(call.traits, tensors)
        call.number = self.scope.numbers[call.traits.name] - 1
        reason = reason or has_no_values(tensors) or self.tool.refuses(call)
        if reason is None:
            return True
        self.skipped[reason] += 1
        self.tool.lets_run(call)
        return False
