"""Runs each op of a step once more in another dtype and measures what that costs; the step stays as it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nbkit import units
from nbkit.capture.diff.mode import role_of
from nbkit.capture.operators.dtype_map import FLOAT8, not_cast
from nbkit.capture.operators.intercept import Intercepted, Interceptor
from nbkit.capture.operators.rounding import BLOCK, lost, rounded
from nbkit.capture.raw.conj_neg import as_bare
from nbkit.capture.recorder.observer import Frames, Meta
from nbkit.capture.replay.copies import mapped_call
from nbkit.capture.replay.op_traits import A_VIEW
from nbkit.capture.replay.reference import CPU, Call, Reference, Results
from nbkit.capture.scope.filters import CallFilters
from nbkit.errors import first_line
from nbkit.schema import CASTS
from nbkit.trace.trace import Trace

NO_SCALE = (None,)
SCALES = ("none", "tensor", "block")
OF_ROW = ("role", "position", "dtype", "scaling")
OF_VALUES = ("error", "own_error", "overflow_fraction", "underflow_fraction", "collapsed_fraction", "loss_change")


@dataclass
class CastRow:
    """Holds what one cast does to one result; `error` tensors wait for the gradient of the result."""

    seen: int  # of the call
    role: str
    position: int
    dtype: str
    scaling: str | None
    values: dict[str, float | None] = field(default_factory=dict)
    message: str | None = None
    difference: Tensor | None = None


class CastProbe(Interceptor):
    """Measures casts of chosen calls; adds the frame `casts`."""

    def __init__(self, dtypes: dict[torch.dtype, torch.dtype], filters: CallFilters) -> None:
        super().__init__(filters)
        self.dtypes, self.reference = dtypes, Reference("cpu")
        self.rows: list[CastRow] = []
        self.waiting: list[tuple[Tensor, list[CastRow]]] = []  # results that autograd is still to be told of
        self.probed = 0

    def skipped(self, reason: str) -> str:
        return f"not cast: {reason}"

    def refuses(self, call: Intercepted) -> str | None:
        if reason := not_cast(call, self.dtypes):
            return reason
        return "random ops: they draw other numbers when they run again" if call.traits.is_random else None

    def run(self, call: Intercepted) -> Any:
        mode = call.mode
        prepared = mode.isolated(lambda: self._prepare(call), lambda error: self._failed(call, error))
        out = call.run()
        if prepared is not None:
            self.probed += 1
            mode.isolated(lambda: self._measure(call, prepared, out), lambda error: self._failed(call, error))
        return out

    def _failed(self, call: Intercepted, error: Exception) -> None:
        call.mode.skipped[f"could not be cast: {call.traits.name} ({first_line(error)})"] += 1

    def _prepare(self, call: Intercepted) -> tuple[Call, list[tuple[CastRow, Any, Any]]]:
        runs = []
        for dtype in dict.fromkeys(self.dtypes[one.dtype] for one in call.tensors() if one.dtype in self.dtypes):
            for scaling in SCALES if dtype in FLOAT8 else NO_SCALE:
                row = CastRow(call.seen, "output", 0, str(dtype).removeprefix("torch."), scaling)
                runs.append((row, *mapped_call(call.args, call.kwargs, self._cast(scaling), {})))
        return self.reference.copy(call.traits, call.args, call.kwargs), runs

    def _cast(self, scaling: str | None) -> Callable[[Any], Any]:
        def change(value: Any) -> Any:
            if isinstance(value, torch.device):
                return value
            if isinstance(value, torch.dtype):
                wanted = self.dtypes.get(value, value)
                return torch.float32 if wanted in FLOAT8 else wanted
            dtype = self.dtypes.get(value.dtype)
            if dtype is None:
                return value.detach().clone()
            return rounded(value.detach(), dtype, scaling) if dtype in FLOAT8 else value.detach().to(dtype, copy=True)

        return change

    def _measure(self, call: Intercepted, prepared: tuple[Call, list[tuple[CastRow, Any, Any]]], out: Any) -> None:
        reference, runs = prepared
        traits = call.traits
        actual = Results.of(traits, out, call.args, call.kwargs)
        expected = reference.results((call.args, call.kwargs))
        expected.turn(traits.packet, actual)
        inputs = [tensor for tensor in call.tensors() if tensor.dtype in self.dtypes]
        by_result: dict[int, list[CastRow]] = {}
        for row, args, kwargs in runs:
            try:
                results = Results.of(traits, as_bare(traits.func._op, args, kwargs), args, kwargs)
            except Exception as error:
                row.message = f"it does not run in this dtype: {first_line(error)}"
                self.rows.append(row)
                continue
            results.turn(traits.packet, actual)
            for index, made in self._rows_of(row, results, actual, expected, inputs):
                made.role, made.position = role_of(actual, index, (call.args, call.kwargs))
                self.rows.append(made)
                by_result.setdefault(index, []).append(made)
        for index, rows in by_result.items():
            self.waiting.append((actual.all[index], rows))

    def _rows_of(
        self, row: CastRow, results: Results, actual: Results, expected: Results, inputs: list[Tensor]
    ) -> Iterator[tuple[int, CastRow]]:
        dtype = getattr(torch, row.dtype)
        for index, (cast, own, wanted) in enumerate(zip(results.all, actual.all, expected.all, strict=False)):
            if not own.is_floating_point() or not own.numel() or cast.shape != own.shape != wanted.shape:
                continue
            made = CastRow(row.seen, row.role, index, row.dtype, row.scaling)
            cast_values, own_values, right = (one.detach().to(CPU, torch.float64) for one in (cast, own, wanted))
            made.values = {
                "error": _relative(cast_values, right),
                "own_error": _relative(own_values, right),
                **lost([*inputs, right], dtype, row.scaling),
            }
            made.difference = _difference(cast_values, own_values).to(torch.float32)
            yield index, made

    def before_each(self, call: Intercepted) -> None:
        """Asks autograd for the gradients of results that it has noted by now; they say what an error does to the loss.

        It notes a result after the op has run below it: when the next op comes. One that wrote to a view may not have
        ended then: autograd makes that view again, by view ops, and holds a lock that asking for its node waits for.
        """
        if not self.waiting:
            return
        waiting, self.waiting = self.waiting, []
        is_view = call.traits.leave_out == A_VIEW
        for tensor, rows in waiting:
            if is_view and tensor._is_view():
                self.waiting.append((tensor, rows))
            elif not call.mode.isolated(partial(self._ask, tensor, rows), lambda error: None):
                for row in rows:
                    row.difference = None

    def _ask(self, tensor: Tensor, rows: list[CastRow]) -> bool:
        """Returns whether the gradient was asked for. A node of a view made in no_grad mode may only raise."""
        if not tensor.requires_grad or tensor.is_leaf:
            return False
        tensor.register_hook(self._gradient_hook(rows))
        return True

    def _gradient_hook(self, rows: list[CastRow]) -> Callable[[Tensor], None]:
        def work(gradient: Tensor) -> None:
            wide = gradient.detach().to(CPU, torch.float64)
            for row in rows:
                if row.difference is not None:
                    row.values["loss_change"] = float((wide * row.difference).sum())
                    row.difference = None

        def hook(gradient: Tensor) -> None:
            mode = vars(self).get("mode")
            if mode is not None:
                mode.isolated(lambda: work(gradient), lambda error: None)

        return hook

    def progress(self) -> str:
        return f"{units.counted(self.probed, 'call')} cast"

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        super().frames(trace, ops, op_ids)
        columns = {
            **{name: [getattr(row, name) for row in self.rows] for name in (*OF_ROW, "message")},
            **{name: [row.values.get(name) for row in self.rows] for name in OF_VALUES},
        }
        frame = self.frame(CASTS, [row.seen for row in self.rows], ops, op_ids, columns)
        notes = [f"Blocks are {BLOCK} elements of the last dim."] if set(self.dtypes.values()) & set(FLOAT8) else []
        return {"casts": frame}, {"cast_ops": self.probed, "notes": notes}

    def forget(self) -> None:
        super().forget()
        self.waiting.clear()
        self.rows.clear()  # those of results without a gradient hold their differences


def _relative(values: Tensor, right: Tensor) -> float:
    """|values - right| over |right|, 2-norms; 0 for two equal, inf where right is 0 and values are not.

    What is Inf or NaN in both is no error, and has no part in the norm.
    """
    norm, error = float(right[right.isfinite()].norm()), float(_difference(values, right).norm())
    return error / norm if norm else (0.0 if error == 0 else float("inf"))


def _difference(values: Tensor, right: Tensor) -> Tensor:
    """The difference; 0 where both are the same Inf, or NaN."""
    is_same = (values == right) | (values.isnan() & right.isnan())
    return torch.where(is_same, 0.0, values - right)
