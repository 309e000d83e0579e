"""Runs a chosen set of calls otherwise, and lists the calls that could be chosen."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from nbkit.capture.operators.elsewhere import HALVES, Elsewhere
from nbkit.capture.operators.fallback import Replacing
from nbkit.capture.operators.intercept import Intercepted
from nbkit.capture.recorder.observer import Frames, Meta
from nbkit.capture.scope.filters import CallFilters
from nbkit.trace.trace import Trace

NOT_CHOSEN = "not chosen"
Key = tuple[str, int]  # an op, and the how many-th of its calls, from 0


class ChosenCall(NamedTuple):
    """Names a call of the step: the how many-th `call` of the op, from 0; `op_id` is its row of `ops`, if it has one.

    module, phase and source are as in `ops`.
    """

    op: str
    call: int
    module: str | None
    phase: str
    source: str | None
    op_id: int | None

    @property
    def key(self) -> Key:
        """Returns what tells it from other calls of a step."""
        return self.op, self.call


class Choosing(Replacing):
    """Runs the calls elsewhere whose keys are in `chosen`, all if that is None; leaves others as they are."""

    def __init__(self, elsewhere: Elsewhere, chosen: frozenset[Key] | None, filters: CallFilters) -> None:
        super().__init__(elsewhere, "", filters)
        self.chosen = chosen
        self.could: list[tuple[int, Key]] = []  # `seen` and key of what could be chosen
        self.listed: list[ChosenCall] = []  # known at the end

    def refuses(self, call: Intercepted) -> str | None:
        reason = super().refuses(call) or self._without_effect(call)
        if reason is not None:
            return reason
        key = call.traits.name, call.number
        self.could.append((call.seen, key))
        return None if self.chosen is None or key in self.chosen else NOT_CHOSEN

    def _without_effect(self, call: Intercepted) -> str | None:
        """Returns why the call is the same elsewhere: no dtype of it changes."""
        if self.elsewhere.device is not None:
            return None
        dtypes = {tensor.dtype for tensor in call.tensors()} | {call.kwargs.get("dtype")}
        return None if dtypes & HALVES.keys() else "no tensor in half precision"

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        self.mode.skipped.pop(NOT_CHOSEN, None)
        super().frames(trace, ops, op_ids)
        if self.chosen is None:  # what did not run elsewhere cannot be chosen
            ran = {seen for seen, *_ in self.rows}
            self.could = [(seen, key) for seen, key in self.could if seen in ran]
        ids = self.op_ids([seen for seen, _ in self.could], op_ids).tolist()
        places = [ops[name].array.take(np.maximum(ids, 0)) for name in ("module", "phase", "source")] if ids else [()]
        for (_, (op, call)), op_id, *place in zip(self.could, ids, *places, strict=True) if ids else ():
            texts = [value if op_id >= 0 and isinstance(value, str) else None for value in place]
            self.listed.append(
                ChosenCall(op, call, texts[0], texts[1] or "other", texts[2], op_id if op_id >= 0 else None)
            )
        return {}, {}


def in_call_numbers(keys: Iterable[Key]) -> dict[str, str]:
    """Returns calls as the options `ops` and `calls` name them: by op the numbers, such as "0,3:8"."""
    numbers: dict[str, list[int]] = {}
    for op, number in keys:
        numbers.setdefault(op, []).append(number)
    return {op: ",".join(_ranges(sorted(numbers[op]))) for op in sorted(numbers)}


def _ranges(numbers: Sequence[int]) -> list[str]:
    texts: list[str] = []
    start = 0
    for place, number in enumerate(numbers):
        if place + 1 < len(numbers) and numbers[place + 1] == number + 1:
            continue
        texts.append(str(number) if numbers[start] == number else f"{numbers[start]}:{number + 1}")
        start = place + 1
    return texts


def by_module(calls: Sequence[ChosenCall], errors: dict[Key, float]) -> list[list[ChosenCall]]:
    """Returns the calls in groups by module, that with the largest local error first, and so within each."""
    groups: dict[str | None, list[ChosenCall]] = {}
    for call in calls:
        groups.setdefault(call.module, []).append(call)

    def error(call: ChosenCall) -> float:
        return errors.get(call.key, 0.0)

    ordered: list[list[ChosenCall]] = [sorted(group, key=error, reverse=True) for group in groups.values()]
    return sorted(ordered, key=lambda group: error(group[0]), reverse=True)
