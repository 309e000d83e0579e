"""Looks at the data of a step: tensors that no op of a model has made, where an op first computes with them."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from nbkit.capture.audit.measures import has_plain_values
from nbkit.capture.check.masks import hides, holds_only_minus_inf
from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.capture.replay.op_traits import traits_of
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.findings.finding import line_texts
from nbkit.findings.steps.inputs import StepInput
from nbkit.ops.families import MOVES
from nbkit.trace.trace import Trace


class Look(NamedTuple):
    """Holds what was seen of one tensor at one op."""

    slot: int
    shape: tuple[int, ...]
    largest: tuple[float, ...]


class InputsObserver(Observer):
    """Notes the largest magnitude of each sample of the data that the step computes with.

    `held` are tensors that models and optimizers hold, which are no data.
    """

    def __init__(self, held: Iterable[Tensor]) -> None:
        self.is_data: Any = WeakIdKeyDictionary()
        for tensor in held:
            self.is_data[tensor] = False
        self.looks: list[Look] = []
        self.inputs: list[StepInput] = []

    def below(self, recording: Recording, modules: ModuleCalls) -> AbstractContextManager[object]:
        self.recording = recording
        return nullcontext()

    def around(self, func: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        moves = func.is_view or func._opname in MOVES
        traits = traits_of(func)

        def run_and_look(*args: Any, **kwargs: Any) -> Any:
            tensors = all_tensors(args, kwargs)
            is_data = [self.is_data.get(tensor, not tensor.requires_grad) for tensor in tensors]
            if not moves:
                for tensor, is_new in zip(tensors, is_data, strict=True):
                    if is_new and tensor.is_floating_point() and tensor.dim():
                        self._look(tensor, may_be_mask=hides(traits, len(tensors)))
            out = run(*args, **kwargs)
            hands_on = (moves and all(is_data)) or not tensors
            for tensor in all_tensors((out,), {}):
                if tensor not in self.is_data:
                    self.is_data[tensor] = hands_on
            return out

        return run_and_look

    def _look(self, tensor: Tensor, *, may_be_mask: bool) -> None:
        self.is_data[tensor] = False  # the first op tells
        slot = self.recording.ops.row_count

        def look() -> None:
            if tensor.numel() and has_plain_values(tensor):
                rows = tensor.detach().flatten(1) if tensor.dim() > 1 else tensor.detach().unsqueeze(1)
                largest = rows.abs().amax(1).double().tolist()
                if may_be_mask and inf in largest and holds_only_minus_inf(tensor):  # of a mask, which hides by it
                    largest = rows.masked_fill(rows == -inf, 0).abs().amax(1).double().tolist()
                self.looks.append(Look(slot, tuple(tensor.shape), tuple(largest)))

        timed_isolated(self.recording, look, lambda error: None)

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        looks = [look for look in self.looks if look.slot < len(op_ids)]
        self.rows = [(int(op_ids[look.slot]), look) for look in looks]
        return {}, {}

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        ops, texts = frames["ops"], line_texts(frames["lines"])
        for op_id, look in self.rows:
            op, module, source, phase = (ops[name].iloc[op_id] for name in ("op", "module", "source", "phase"))
            if phase in ("forward", "other"):
                source = source if isinstance(source, str) else None
                module = module if isinstance(module, str) else None
                self.inputs.append(StepInput(op, module, source, texts.get(source or ""), look.shape, look.largest))
        return frames, meta

    def forget(self) -> None:
        del self.recording
        self.is_data = WeakIdKeyDictionary()
