"""Follows the optimizers of a recording: what gradients each of their steps met, and which a GradScaler skipped."""

import ast
import gc
import linecache
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any
from weakref import ref

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from nbkit.capture.audit.clipping import Clips
from nbkit.capture.audit.makings import Makings
from nbkit.capture.audit.measures import measured_gradient
from nbkit.capture.audit.models import AuditedModel, Held, Update, storage_of
from nbkit.capture.audit.passes import Checkpoints, Passes, span
from nbkit.capture.audit.schedules import Schedules
from nbkit.capture.calls.autocast_cache import cached_casts
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.source import code_text, is_user_frame, line_text, location_text, user_location
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.capture.step.optimizer_events import OptimizerEvents
from nbkit.findings.training.facts import Again, Skip


class OptimizerAudit:
    """Looks at the gradients of all audited models where an optimizer steps, while installed."""

    def __init__(self, recording: Recording, models: list[AuditedModel], given: Sequence[Any]) -> None:
        self.recording = recording
        self.models = models
        self.known: list[Any] = [ref(optimizer) for optimizer in given]
        self.skips: list[Skip] = []
        self.steps = 0  # done ones
        self.idle_steps = 0  # those of which no parameter had a gradient
        self.stepped: dict[int, str] = {}  # types of optimizers, by id
        self.unheld: set[int] = set()  # ids of parameters that were stepped and were in no audited model then
        self.times = Counter[int]()  # how often each stepped, or was skipped
        self.last = -1  # the id of the one that stepped last
        self.again: list[Again] = []
        self.clips = Clips(recording, self._clippable, lambda: len(self.passes.noted))
        self.draws = RepeatedDraws(recording)
        self.stale = StaleCasts()
        self.passes = Passes(recording, self._tensors, self.clips.before_pass)
        self.checkpoints = Checkpoints(recording)
        self.makings = Makings()
        self.schedules = Schedules(lambda: len(self.passes.noted), self.times)
        self.events = OptimizerEvents(self._isolated, self._met, self._skipped, self.clips.before_scaler_steps)

    def install(self) -> None:
        for part in (self.events, self.clips, self.passes, self.checkpoints, self.makings, self.schedules):
            part.install()
        self.draws.begin()

    def remove(self) -> None:
        self.schedules.remove()
        for part in (self.makings, self.checkpoints, self.passes, self.clips):
            part.patch.remove()
        self.events.remove()

    def _isolated(self, work: Callable[[], object]) -> None:
        timed_isolated(self.recording, work, self._trouble)

    def _trouble(self, error: Exception) -> None:
        self.recording.skip(f"gradients not looked at ({type(error).__name__})")

    def _met(self, optimizer: Any, has_closure: bool) -> None:
        self.steps += 1
        self.stepped[id(optimizer)] = type(optimizer).__name__
        self.passes.stepped()
        self.draws.after()
        self.stale.before_step([one for group in optimizer.param_groups for one in group["params"]])
        self._note(optimizer, True, has_closure)

    def _skipped(self, optimizer: Any, scale: Any) -> None:
        self.passes.stepped()
        number = None if scale is None else float(scale)
        self.skips.append(Skip(self.recording.step, type(optimizer).__name__, number))
        self._note(optimizer, False, False)

    def _note(self, optimizer: Any, is_done: bool, has_closure: bool) -> None:
        """Notes what this step met: the gradients that it uses, and those of others that were not seen yet."""
        for model in self.models:
            model.count_hooks()
        self._know(optimizer)
        self.times[id(optimizer)] += 1
        groups = groups_of(optimizer)
        updated = [one for group in getattr(optimizer, "param_groups", []) for one in group["params"]]
        if is_done and not has_closure:
            self._note_again(optimizer, updated)
        self.clips.before_step(groups, updated if is_done else ())
        self.idle_steps += is_done and all(one.grad is None for one in updated)
        self.unheld |= groups.keys()
        met = set[int]()
        for model, held in self.parameters():
            self.unheld.discard(id(held.tensor))
            followed, gradient = model.met(held), held.tensor.grad
            group = groups.get(id(held.tensor))
            if group is not None:
                storage = storage_of(gradient, self.recording.registry)
                rate = None if group.get("lr") is None else float(group["lr"])
                has_gradient = gradient is not None
                update = Update(self.recording.step, storage, is_done, has_closure, has_gradient, rate)
                followed.note_step(gradient, update, has_backward=bool(self.passes.noted))
                followed.note_rates(group.get("lr"), group.get("weight_decay"))
                followed.in_optimizer = True
                met.add(id(followed))
            elif gradient is not None:
                followed.other = followed.other or measured_gradient(gradient)
                if is_done:
                    followed.foreign.append((self.recording.step, storage_of(gradient, self.recording.registry)))
        if is_done:
            self.makings.stepped(optimizer, frozenset(met), has_closure)

    def _note_again(self, optimizer: Any, updated: Sequence[Tensor]) -> None:
        """Notes a step on gradients that are as this optimizer's step before read them."""
        used = [one for one in updated if one.grad is not None]
        if used and self.last == id(optimizer) and all(map(self.clips.is_used, used)):
            place = user_location(sys._getframe(1))
            lines = (None, None) if place is None else (location_text(place), code_text(place))
            self.again.append(Again(type(optimizer).__name__, self.recording.step, *lines))
        self.last = id(optimizer)

    def _know(self, optimizer: Any) -> None:
        if not any(known() is optimizer for known in self.known):
            self.known.append(ref(optimizer))

    def _tensors(self) -> Iterator[Tensor]:
        return (held.tensor for _, held in self.parameters())

    def _clippable(self) -> Iterator[Tensor]:
        yield from self._tensors()
        for optimizer in filter(None, (known() for known in self.known)):
            yield from (one for group in getattr(optimizer, "param_groups", []) for one in group["params"])

    def parameters(self) -> Iterator[tuple[AuditedModel, Held]]:
        """Yields each parameter once, by its first name in the first model that has it."""
        seen: set[int] = set()
        for model in self.models:
            for held in model.held():
                if held.kind == "parameter" and id(held.tensor) not in seen and held.tensor.is_leaf:
                    seen.add(id(held.tensor))
                    yield model, held

    def note_idle(self) -> None:
        """Notes which parameters are held by optimizers that did not step: of those given, else of all there are.

        Where none is known, others are looked for only if gradients were cleared that no step used.
        """
        if not self.known and not any(one.is_cleared for one in self.passes.noted):
            return
        rest = [one for one in self.parameters() if not one[0].of(one[1].name).in_optimizer]
        optimizers = [optimizer for known in self.known if (optimizer := known()) is not None]
        if rest:  # to look for others takes a while
            optimizers += [held for held in gc.get_objects() if issubclass(type(held), Optimizer)]
        for optimizer in optimizers:
            groups = groups_of(optimizer)
            for model, held in rest:
                if (group := groups.get(id(held.tensor))) is not None:
                    self._know(optimizer)
                    followed = model.of(held.name)
                    followed.in_optimizer = True
                    followed.note_rates(group.get("lr"), group.get("weight_decay"))


class RepeatedDraws:
    """Notes where torch's default generator stands at an optimizer step exactly where it stood at the one before."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.repeated: list[range] = []  # rows of recording.ops from one such step to the next

    def begin(self) -> None:
        self.first = self.last = self._state()
        self.row = self._rows()

    def after(self) -> None:
        """Looks at the generator; where it is as it was before the recording, nobody may have drawn from it."""
        state, row = self._state(), self._rows()
        if state == self.last and state != self.first:
            self.repeated.append(range(self.row, row))
        self.last, self.row = state, row

    def ops(self, op_ids: np.ndarray) -> list[range]:
        """Returns the ops between each two such steps; `op_ids` holds one per row of recording.ops."""
        return [span(op_ids[rows.start : rows.stop]) for rows in self.repeated]

    def _rows(self) -> int:
        return self.recording.ops.row_count

    def _state(self) -> bytes:
        return bytes(torch.get_rng_state().numpy())


def groups_of(optimizer: Any) -> dict[int, dict[str, Any]]:
    """Returns the group of each parameter of an optimizer, by its id."""
    groups = getattr(optimizer, "param_groups", [])
    return {id(parameter): group for group in groups for parameter in group["params"]}


class StaleCasts:
    """Looks at each step of an optimizer; `noted` has the ids of weights read so, `source` the line of the block."""

    def __init__(self) -> None:
        self.last: dict[int, Any] = {}  # the memory of the casts at the step before, by the id of the weight
        self.noted: set[int] = set()
        self.source: str | None = None

    def before_step(self, parameters: Iterable[Tensor]) -> None:
        """Notes those whose gradients come from a cast that was there before the last step."""
        casts = {id(weight): (weight, cast) for weight, cast, _ in cached_casts(parameters)}
        for key, (weight, cast) in casts.items():
            is_kept = key in self.last and self.last[key]() is cast.untyped_storage()
            if is_kept and weight.grad is not None and not torch.equal(cast, weight.detach().to(cast.dtype)):
                self.noted.add(key)
        self.last |= {key: ref(cast.untyped_storage()) for key, (_, cast) in casts.items()}
        if self.noted and self.source is None:
            self.source = _line_of_block(sys._getframe())


def _line_of_block(frame: FrameType | None) -> str | None:
    """Returns the line of the innermost block of autocast around what runs, as in ops.source; null if unknown."""
    while frame is not None:
        name, line = frame.f_code.co_filename, frame.f_lineno
        if is_user_frame(frame) and (text := "".join(linecache.getlines(name))):
            blocks = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.With | ast.AsyncWith)]
            around = [one for one in blocks if one.lineno <= line <= (one.end_lineno or 0)]
            lines = [one.lineno for one in around if "autocast" in "".join(map(ast.unparse, one.items))]
            if lines:
                return line_text(name, max(lines))
        frame = frame.f_back
    return None
