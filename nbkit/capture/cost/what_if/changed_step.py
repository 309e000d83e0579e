"""Runs a step on shapes alone under other conditions."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.attention import sdpa_kernel

from nbkit.capture.cost.fake.fake_step import FakeStep
from nbkit.capture.cost.observer import Conditions, CostObserver, Met
from nbkit.capture.cost.storages import INPUT, STATE
from nbkit.capture.cost.what_if.changes import BACKENDS, Changes
from nbkit.capture.cost.what_if.checkpointing import checkpointed, outermost
from nbkit.capture.cost.what_if.fully_sharded import fully_sharded
from nbkit.capture.cost.what_if.optimizers import on_stand_ins, put_back, step_otherwise
from nbkit.capture.cost.what_if.sizes import resizing
from nbkit.capture.cost.what_if.stand_ins import StandInMode, StandIns
from nbkit.capture.cost.what_if.tensor_parallel import Ranks, tensor_parallel
from nbkit.capture.recorder.recorder import Recorder
from nbkit.errors import CostError, NbkitError, OptionError, first_line
from nbkit.patterns import path_matcher
from nbkit.trace.trace import Trace


class Costing(Recorder):
    """Records a step on shapes alone, as opcost does, under conditions."""

    verb = "opcost"


@dataclass(frozen=True)
class Known:
    """Holds a trace of a step, and what the step met."""

    trace: Trace
    met: tuple[Met, ...]
    optimizers: tuple[Any, ...]  # weak references
    models: dict[str, Any]  # weak references by label
    recomputed: frozenset[int]  # op_ids of what checkpoints run again

    def called_models(self) -> Iterator[tuple[str, nn.Module, set[str]]]:
        """Gives label, model, and the paths of the modules whose forward ran, of each model that lives on."""
        modules = self.trace.modules[self.trace.modules["calls"] > 0]
        for label, reference in self.models.items():
            if (model := reference()) is not None:
                yield label, model, set(modules.loc[modules["model"] == label, "module"])


def observe(step: Callable[[], object], conditions: Conditions | None = None, name: str | None = None) -> Known:
    """Runs a step on shapes alone. Raises OptionError for what cannot be called, and what the step raises."""
    if not callable(step):
        raise OptionError(
            f"The step is to be called, and this is a {type(step).__name__}; give a function without arguments."
        )
    observer = CostObserver(conditions)
    with Costing(observer, name=name) as trace:
        step()
    optimizers = tuple(
        ref(optimizer) for optimizer in observer.optimizers if not _is_made_inside(_parameters(optimizer))
    )
    models = {
        label: each
        for label, each in observer.models.items()
        if (model := each()) is not None and not _is_made_inside(model.parameters())
    }
    return Known(trace, tuple(observer.met), optimizers, models, frozenset(observer.recomputed))


def _parameters(optimizer: Any) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _owned_state(optimizers: Iterable[Any]) -> list[tuple[Tensor, Any]]:
    """Returns the tensors in the state of optimizers, each with the parameter that it is of."""
    states = [(key, of) for optimizer in optimizers for key, of in optimizer.state.items() if isinstance(of, dict)]
    return [(value, key) for key, of in states for value in of.values() if isinstance(value, Tensor)]


def _is_made_inside(tensors: Iterable[Tensor]) -> bool:
    """Returns whether tensors were made by a step on shapes, and are gone with it."""
    return any(isinstance(tensor, FakeTensor) for tensor in tensors)


def observe_changed(step: Callable[[], object], changes: Changes, before: Known) -> Known:
    """Runs a step as `changes` say. Raises OptionError for what it has not, CostError if it does not run so."""
    conditions = ChangedConditions(changes, before)
    try:
        known = observe(step, conditions, str(changes))
    except NbkitError:
        raise
    except Exception as error:
        raise CostError(f"The step does not run with {changes}: {first_line(error)}; {_advice(changes)}.") from error
    if changes.sdpa is not None and not (_has_attention(before.trace) or _has_attention(known.trace)):
        raise OptionError(
            f"sdpa={changes.sdpa!r} changes nothing: the step calls no scaled_dot_product_attention, or chooses its "
            "backend itself."
        )
    known.trace.meta["notes"] += conditions.notes()
    if conditions.modules:
        known.trace.meta["checkpointed"] = {label: [*of] for label, of in conditions.modules.items()}
    if changes.dtype is not None:
        _correct_parameter_bytes(known, changes.dtype)
    return replace(known, trace=_of_one_rank(known, changes))


def _has_attention(trace: Trace) -> bool:
    return bool(trace.ops["op"].str.contains("scaled_dot_product", regex=False).any())


def _advice(changes: Changes) -> str:
    if changes.resizes:
        return "where sizes do not fit, name the old one, as in batch_size={8: 32}, which changes all that have it"
    if changes.checkpoint is not None:
        return (
            "a module that changes what it is given, such as a cache of keys and values, cannot run again: leave it out"
        )
    return "ask for one change at a time to see which one it is"


def _of_one_rank(known: Known, changes: Changes) -> Trace:
    trace, split = known.trace, frozenset[int]()
    models = {label: model for label, model, _ in known.called_models()}
    if not models and (changes.tensor_parallel or changes.fully_sharded):
        raise OptionError(f"{changes} changes nothing: the step runs no model that was made before it.")
    if changes.tensor_parallel is not None:
        numbers = {id(met.tensor()): met.storage.number for met in known.met}
        optimizers = [optimizer for each in known.optimizers if (optimizer := each()) is not None]
        owned = {numbers[id(value)]: key for value, key in _owned_state(optimizers) if id(value) in numbers}
        ranks = Ranks(changes.tensor_parallel, numbers, owned, known.recomputed)
        trace, split = tensor_parallel(trace, models, ranks)
    if changes.fully_sharded is not None:
        parts = dict.fromkeys(split, changes.tensor_parallel or 1)
        trace = fully_sharded(trace, models, changes.fully_sharded, changes.dtype, parts)
    return trace


class ChangedConditions(Conditions):
    """Applies changes to a step, of which a run without them is known."""

    def __init__(self, changes: Changes, before: Known) -> None:
        self.changes, self.before = changes, before
        inputs = [met.shape for met in before.met if met.storage.kind == INPUT and met.shape]
        self.optimizers = [optimizer for each in before.optimizers if (optimizer := each()) is not None]
        sizes = resizing(changes.batch_size, changes.sequence_length, inputs)
        self.makes_stand_ins = changes.resizes or changes.dtype is not None
        own = self._own() if self.makes_stand_ins else {}
        self.stand_ins = StandIns(sizes, changes.dtype, own, self._counters())
        self.modules = self._checkpointed_modules()
        storages = before.trace.storages
        self.has_stepped = not (storages["op_id"].notna() & (storages["kind"] == STATE)).any()
        if not self.optimizers and (changes.optimizer is not None or changes.foreach is not None):
            name = "foreach" if changes.optimizer is None else "optimizer"
            raise OptionError(f"{name} changes nothing: the step runs no optimizer that was made before it.")

    def _own(self) -> dict[int, Tensor]:
        """Returns the tensors that are no inputs, by id: buffers, and what optimizers hold."""
        models = [model for _, model, _ in self.before.called_models()]
        buffers = [buffer for model in models for buffer in model.buffers()]
        parameters = [parameter for optimizer in self.optimizers for parameter in _parameters(optimizer)]
        return {id(tensor): tensor for tensor in (*buffers, *parameters, *self._state())}

    def _state(self) -> list[Tensor]:
        states = [
            state for optimizer in self.optimizers for state in optimizer.state.values() if isinstance(state, dict)
        ]
        return [value for state in states for value in state.values() if isinstance(value, Tensor)]

    def _counters(self) -> dict[int, Tensor]:
        """Returns the numbers in the state of optimizers, such as that of their steps, which no cast changes."""
        return {id(value): value for value in self._state() if not value.dim()}

    def _stepped(self, step: FakeStep) -> set[int]:
        """Returns the ids of the tensors that the step as it is takes, and of what stands for them."""
        taken = [tensor for met in self.before.met if (tensor := met.tensor()) is not None]
        return {id(tensor) for tensor in taken} | {id(step.fakes.get(tensor)) for tensor in taken}

    def _checkpointed_modules(self) -> dict[str, dict[str, nn.Module]]:
        patterns = self.changes.checkpoint
        if patterns is None:
            return {}
        matches, known = path_matcher(patterns), set[str]()
        found: dict[str, dict[str, nn.Module]] = {}
        for label, model, called in self.before.called_models():
            known |= called
            chosen = outermost(model, {path for path in called if matches(path)}.__contains__)
            found |= {label: chosen} if chosen else {}
        if not found:
            some = ", ".join(map(repr, sorted(known)[:8])) or "none, as the step runs no model that was made before it"
            raise OptionError(f"checkpoint={patterns!r} matches no module that runs; paths are {some}.")
        return found

    def stand_in(self, real: Tensor) -> FakeTensor | None:
        return self.stand_ins.of(self.fake, real) if self.makes_stand_ins else None

    @contextmanager
    def around(self, observer: CostObserver) -> Iterator[None]:
        changes, step = self.changes, observer.step
        self.fake = step.fake
        with ExitStack() as stack:
            stack.enter_context(checkpointed(module for of in self.modules.values() for module in of.values()))
            if changes.dtype is not None:
                stack.enter_context(on_stand_ins(self.optimizers, step))
            stack.enter_context(put_back(self.optimizers))
            yield

    @contextmanager
    def inside(self, observer: CostObserver) -> Iterator[None]:
        with ExitStack() as stack:
            if self.makes_stand_ins:
                observer.modules.api.below = mode = StandInMode(observer.step)
                stack.enter_context(mode)
            if self.changes.sdpa is not None:
                stack.enter_context(sdpa_kernel(BACKENDS[self.changes.sdpa]))
            stepped = self._stepped(observer.step) if self.has_stepped else set()
            for optimizer in self.optimizers:
                step_otherwise(optimizer, self.changes.optimizer, self.changes.foreach, stepped, observer)
            yield

    def notes(self) -> list[str]:
        """Says what was changed of what the step takes. Raises OptionError if that is nothing."""
        changes = self.changes
        notes = [
            f"Inputs of the shape {list(old)} were seen as {list(new)}."
            for old, new in self.stand_ins.resized_from.items()
        ]
        if not notes and changes.resizes:
            raise OptionError(
                f"{changes} changes nothing: no input of that size came from outside the step; make the inputs before "
                "the step, not in it."
            )
        if changes.dtype is not None and not self.stand_ins.casts:
            raise OptionError(
                f"{changes} changes nothing: the step takes no floating tensors of another dtype from outside."
            )
        return notes


def _correct_parameter_bytes(known: Known, dtype: torch.dtype) -> None:
    """Sets the bytes of parameters and buffers of each module to what they are in another dtype."""
    for name in ("modules", "module_costs"):
        frame = known.trace.frames[name].copy()
        for label, reference in known.models.items():
            model = reference()
            for path, module in model.named_modules() if model is not None else ():
                rows = (frame["model"] == label) & (frame["module"] == path)
                frame.loc[rows, "param_bytes"] = _size(module.parameters(), dtype)
                if "buffer_bytes" in frame:
                    frame.loc[rows, "buffer_bytes"] = _size(module.buffers(), dtype)
        known.trace.frames[name] = frame


def _size(tensors: Any, dtype: torch.dtype) -> int:
    return sum(each.numel() * (dtype.itemsize if each.is_floating_point() else each.element_size()) for each in tensors)
