"""Runs each chosen module's call as the step does, and compares it, forward and backward, with the reference's."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import get_ident
from time import perf_counter_ns
from typing import Any, NamedTuple
from weakref import WeakSet

import torch
from torch import Tensor, nn

from nbkit.capture.diff.judge import Judge, could_not
from nbkit.capture.diff.modules.copies import held_tensors, tensors_of
from nbkit.capture.diff.modules.eligible import ChosenModules, Draws, why_not
from nbkit.capture.diff.modules.gradients import BackwardPass, GradientHooks, InputEdges
from nbkit.capture.diff.modules.reference_mode import RANDOM, NotRunError
from nbkit.capture.diff.modules.reference_thread import ReferenceThread
from nbkit.capture.diff.modules.run import BackwardCall, ForwardCall, Frozen, ModuleCall, frozen
from nbkit.capture.diff.options import Scope
from nbkit.capture.diff.pair import Row
from nbkit.capture.diff.shadow.errors import norm_ratio
from nbkit.capture.raw.recording import Recording, current_node, next_sequence_number
from nbkit.capture.replay.copies import WIDER
from nbkit.capture.replay.reference import CPU, NoKernelError, Reference
from nbkit.capture.step.called_modules import CalledModule
from nbkit.capture.step.module_calls import ModuleRunner

ShadowOf = Callable[[Tensor], Tensor | None]


class Part(NamedTuple):
    """Holds a tensor of a call as it is to be compared; `dtype` is the step's where `actual` is wider."""

    role: str
    position: int
    actual: Tensor
    name: str | None = None
    dtype: torch.dtype | None = None
    shadow: Tensor | None = None
    before: Tensor | None = None  # of what is left out where neither run has changed it


@dataclass
class Running:
    """Holds what is known of a call before it runs."""

    name: str  # class of the module
    path: str
    in_backward: bool  # a checkpointed part, run again
    has_gradients: bool
    autocast: set[torch.dtype]
    inputs: list[Tensor]
    edges: InputEdges
    sequence: int
    slot: int = 0
    frozen: Frozen = field(init=False)
    versions: dict[int, int] = field(init=False)
    draws: Draws = field(init=False)


class ModuleComparer(ModuleRunner):
    """Takes the calls of modules from ModuleCalls; `compared` counts those that were compared."""

    def __init__(
        self, recording: Recording, reference: Reference, judge: Judge, scope: Scope, shadow_of: ShadowOf
    ) -> None:
        self.recording, self.reference, self.judge, self.scope = recording, reference, judge, scope
        self.shadow_of = shadow_of
        self.thread = ReferenceThread()
        self.chosen = ChosenModules(scope.selection)
        self.skipped: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.compared = 0
        self.hooks: WeakSet[GradientHooks] = WeakSet()
        self.under_way: set[GradientHooks] = set()
        assert reference.dtype is not None
        self.dtype = reference.dtype

    def passing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Returns what runs the modules of a reference, which are no part of the step, without hooks."""
        thread = self.thread

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if get_ident() == thread.ident:
                return module.forward(*args, **kwargs)
            return call(module, *args, **kwargs)

        return __call__

    def call(self, called: CalledModule, module: nn.Module, args: Any, kwargs: Any, run: Callable[..., Any]) -> Any:
        """Runs a call as it is; what is looked at before and after changes nothing of it."""
        if torch.compiler.is_compiling() or not self.chosen.has(called.path, module):
            return run(module, *args, **kwargs)
        reason = self._not_sampled(type(module).__name__)
        if torch._C._functorch.peek_interpreter_stack() is not None:
            reason = "modules inside a transform of torch.func"
        if reason is not None:
            self.skipped[reason] += 1
            return run(module, *args, **kwargs)
        name = type(module).__name__
        running = self._told(lambda: self._begin(called.path, module, args, kwargs), name)
        if running is None or not self._work(lambda: self._prepare(running, module, args, kwargs), name):
            return run(module, *args, **kwargs)
        out = run(module, *args, **kwargs)
        self._told(lambda: self._after(running, module, [*tensors_of(out)]), name)
        return out

    def _begin(self, path: str, module: nn.Module, args: Any, kwargs: Any) -> Running:
        """Asks for the thread's own flags and graph; all else is done in the reference's thread, without modes."""
        with torch._C.DisableTorchFunction():
            inputs = [*tensors_of((args, kwargs))]
            edges = InputEdges(inputs, module)
            flags = current_node() is not None, torch.is_grad_enabled(), _autocast_dtypes(inputs)
            return Running(type(module).__name__, path, *flags, inputs, edges, next_sequence_number())

    def _not_sampled(self, name: str) -> str | None:
        number, every = self.calls[name], self.scope.every
        self.calls[name] += 1
        return f"not sampled (one call of a module in {every} is)" if number % every else None

    def _slot(self) -> int:
        return self.recording.ops.row_count

    def _work(self, work: Callable[[], Any], name: str) -> Any:
        """Returns the result of work of ours in the reference's thread; None where it raises."""
        return self._told(lambda: self.thread.run(work), name)

    def _told(self, work: Callable[[], Any], name: str) -> Any:
        """Returns the result of work of ours, whose time is not the step's; where it raises None, and it is counted."""
        started = perf_counter_ns()
        try:
            return work()
        except NotRunError as reason:
            self.skipped[str(reason)] += 1
        except Exception as error:
            self.skipped[f"{name} {could_not(error)}"] += 1
        finally:
            self.recording.spent.add(started, perf_counter_ns())
        return None

    def _prepare(self, running: Running, module: nn.Module, args: Any, kwargs: Any) -> bool:
        """Copies what the call may change."""
        if reason := why_not(module, args, kwargs):
            raise NotRunError(reason)
        most = self.scope.max_bytes
        if most is not None and self.reference.size_of([*running.inputs, *held_tensors(module)]) > most:
            raise NotRunError(f"modules whose tensors take more than max_bytes={most} on the reference")
        running.frozen = frozen(module, args, kwargs, self.dtype, running.has_gradients)
        running.frozen.dtypes |= running.autocast
        running.versions = _versions(running.inputs)
        running.slot, running.draws = self._slot(), Draws()
        return True

    def _after(self, running: Running, module: nn.Module, outputs: list[Tensor]) -> None:
        """Compares what the call gave, and listens to its backward pass."""
        if self._slot() == running.slot:
            self.skipped["modules that run no op"] += 1
            return
        self.thread.run(lambda: self._forward(running, module, outputs))
        if running.has_gradients and "backward" in self.scope.phases:
            names = [name for name, _ in module.named_parameters()]
            name, path, copies = running.name, running.path, running.frozen
            hooks = GradientHooks(
                lambda work: self._work(work, name),
                self._slot,
                self._copied,
                self.shadow_of,
                lambda told: self._backward((name, path, names), copies, told),
                self.under_way,
            )
            with torch._C.DisableTorchFunction():
                if hooks.attach(outputs, running.edges, running.sequence):
                    self.hooks.add(hooks)

    def _copied(self, gradient: Tensor) -> Tensor:
        wide = WIDER[self.dtype].get(gradient.dtype, gradient.dtype)
        return gradient.detach().to(CPU, wide, copy=True)

    def _forward(self, running: Running, module: nn.Module, outputs: list[Tensor]) -> None:
        if running.draws.any():
            raise NotRunError(RANDOM)
        if running.in_backward or "forward" not in self.scope.phases:
            return
        call = ForwardCall(self.reference, self.thread, running.name, running.frozen)
        call.dtypes.update(tensor.dtype for tensor in outputs)
        call.changed = [
            number
            for number, version in running.versions.items()
            if running.inputs[number]._version != version
            and not any(running.inputs[number] is tensor for tensor in outputs)
        ]
        parts = [Part("output", number, tensor) for number, tensor in enumerate(outputs)]
        parts += [Part("input", number, running.inputs[number]) for number in call.changed]
        parts = [part._replace(shadow=self.shadow_of(part.actual)) for part in parts]
        buffers = zip(module.named_buffers(), running.frozen.module.buffers(), strict=True)
        for number, ((name, buffer), before) in enumerate(buffers):
            parts.append(Part("buffer", number, buffer, name, before=before))
        place = {"module": running.path, "phase": "forward", "end": self._slot()}
        self._compare(call, running.slot, place, parts)

    def _backward(self, module: tuple[str, str, list[str]], copies: Frozen, told: BackwardPass) -> None:
        name, path, names = module
        keys = [key for key in told.sums if key[0] != "output"]
        call = BackwardCall(self.reference, self.thread, name, copies, told.given(), keys)
        call.dtypes.update(told.dtypes.values())
        parts = []
        for key in keys:
            kind, number = key
            what = f"gradient of {names[number]}" if kind == "parameter" else None
            dtype, shadow = told.dtypes[key], told.shadows.get(key)
            parts.append(Part(f"{kind}_gradient", number, told.sums[key], what, dtype, shadow))
        place = {"module": path, "phase": "backward", "end": told.end}
        self._compare(call, told.slot, place, parts)

    def _compare(self, call: ModuleCall, slot: int, place: dict[str, Any], parts: list[Part]) -> None:
        """Adds a row for each tensor of a call."""

        def row_of(part: Part, **more: Any) -> Row:
            return self.judge.add_row(slot, call.traits, part.role, part.position, part.actual, **place, **more)

        try:
            expected = call.results()
        except NotRunError:
            raise
        except NoKernelError as error:
            row_of(parts[0], status="skipped", message=f"the reference cannot run it ({error})")
            self.skipped["modules that the reference cannot run"] += 1
            return
        except Exception as error:
            row_of(parts[0], status="failed", message=could_not(error))
            return
        self.compared += 1
        if len(expected.all) != len(parts):
            row_of(parts[0], status="shape", message=f"{len(parts)} tensors, expected {len(expected.all)}")
            return
        for index, part in enumerate(parts):
            if part.before is not None and _are_same(part.before, part.actual, expected.all[index]):
                continue
            row = row_of(part, named=part.name)
            if part.dtype is not None:
                row["dtype"] = str(part.dtype).removeprefix("torch.")
            if part.shadow is not None:
                _note_errors(row, part.actual, expected.all[index], part.shadow)
            self.judge.compare(row, part.actual, call, expected, index, ((), {}))

    def finish(self) -> None:
        """Takes the hooks away, and compares the passes that ended before they were whole."""
        for hooks in [*self.hooks]:
            hooks.remove()
        for hooks in [*self.under_way]:
            self._work(hooks.finish, "A backward pass")


def _versions(inputs: list[Tensor]) -> dict[int, int]:
    """Returns how often each input has been written to; inference tensors do not tell."""
    return {number: tensor._version for number, tensor in enumerate(inputs) if not tensor.is_inference()}


def _are_same(before: Tensor, *after: Tensor) -> bool:
    """Returns whether all hold the same values, NaN at the same places."""
    wide = [one.detach().to(CPU, before.dtype) for one in after]
    return all(torch.equal(torch.nan_to_num(one), torch.nan_to_num(before)) for one in wide)


def _autocast_dtypes(inputs: list[Tensor]) -> set[torch.dtype]:
    is_available = torch.amp.autocast_mode.is_autocast_available
    kinds = {tensor.device.type for tensor in inputs} | {"cpu"}
    return {torch.get_autocast_dtype(kind) for kind in kinds if is_available(kind) and torch.is_autocast_enabled(kind)}


def _note_errors(row: Row, actual: Tensor, expected: Tensor, shadow: Tensor) -> None:
    """Fills in what a tensor has of its own error, of those of its inputs, and in all; see DIFFS."""
    if actual.shape == expected.shape == shadow.shape:
        row["local_error"] = norm_ratio(actual, expected)
        row["propagated_error"] = norm_ratio(expected, shadow)
        row["total_error"] = norm_ratio(actual, shadow)
