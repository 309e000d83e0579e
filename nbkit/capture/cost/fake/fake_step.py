"""Runs the ops of a step on fake tensors, which have a shape and no values; real ones stay as they are."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._C import (
    _get_dispatch_stack_at,
    _is_torch_function_mode_enabled,
    _len_torch_dispatch_stack,
    _pop_torch_dispatch_stack,
    _push_on_torch_dispatch_stack,
)
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    UnsupportedOperatorException,
)
from torch.nn.parameter import is_lazy
from torch.utils.weak import WeakIdKeyDictionary

from nbkit.capture.cost.fake.absent_devices import (
    as_asked,
    attention_on_absent_devices,
    moves_to_absent_devices,
)
from nbkit.capture.cost.fake.asked_values import AskedValues, Values
from nbkit.capture.cost.fake.asking import ITEM, Asking, op_name
from nbkit.capture.cost.fake.fake_mode import Alike, FakeMode
from nbkit.capture.cost.fake.known_shapes import bounded, shaped_by_values
from nbkit.capture.cost.fake.packed_sequences import ctc_of_fakes, padding_of_fakes
from nbkit.capture.cost.fake.refusals import not_taken, refuse_nested, refuse_shard
from nbkit.capture.cost.fake.shape_formulas import shape_formula
from nbkit.capture.cost.fake.uncompiled import NOTE, Uncompiled, untraced
from nbkit.capture.cost.fake.unknown_number import numbers_of_fakes
from nbkit.capture.cost.fake.workspaces import KEPT, Workspaces
from nbkit.capture.cost.ruled_functions import ruled_functions
from nbkit.capture.raw.step_mode import StepMode
from nbkit.errors import CostError
from nbkit.units import counted

DETACH = torch.ops.aten.detach.default
LIFT = torch.ops.aten.lift_fresh.default  # takes the real tensor that torch.tensor() makes
# torch raises these where a result, or its shape, depends on values.
NEEDS_VALUES = (DataDependentOutputException, DynamicOutputShapeException)
COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
FAKE = torch._C._TorchDispatchModeKey.FAKE


class Watcher(Protocol):
    """Is told what a step on shapes does."""

    def real(self, real: Tensor, fake: FakeTensor) -> None:
        """Is told of a real tensor that the step takes for the first time, and of the fake one that stands for it."""

    def before(self, func: OpOverload, args: Any) -> None:
        """Is told of an op that is about to run."""

    def unpacks(self, func: OpOverload, args: Any) -> bool:
        """Returns whether autograd runs a detach to unpack a saved tensor; it is no op of the step, and is noted so."""

    def after(self, func: OpOverload, args: Any, kwargs: Any, out: Any) -> int:
        """Is told of an op that has run, and returns its FLOPs as far as they are known."""

    def is_in_optimizer(self) -> bool:
        """Returns whether an optimizer is stepping."""

    def where(self) -> str:
        """Returns the module that an op runs in, as the end of a sentence; empty outside any."""


class FakeStep(StepMode):
    """Gives each op fake tensors for the real ones that it takes, and tells a watcher of the call and its result.

    One real tensor has one fake one throughout, and views of one memory share a fake memory. What writes to a real
    tensor writes to its fake one. `stand_in` may return a fake tensor of other sizes or of another dtype than those of
    the real one; None, if it stays as it is.
    """

    def __init__(
        self,
        watcher: Watcher,
        stand_in: Callable[[Tensor], Any],
        number_at: Callable[[int], int],
        way: Values = "auto",
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.fake = FakeMode()
        self.watcher, self.stand_in = watcher, stand_in
        # Of each op, once: its registered rule, and whether it is one of KEPT.
        self.rules: dict[OpOverload, tuple[Callable[..., Any] | None, bool]] = {}
        # What calls like the running op's have in common, null if it was unusual, and the ids of the memories it took.
        self.alike: Alike | None = None
        self.memories: list[int] = []
        self.asked = AskedValues(number_at, way)
        self.asking = Asking(watcher, self.asked)
        self.values = self.asking.values
        self.uncompiled, self.workspaces = Uncompiled(), Workspaces()
        self.ruled: dict[str, int] = {}  # calls of Python functions that their rules ran in place of
        self.real: dict[int, Tensor] = {}  # of the running op: the real tensor by the id of its fake one
        # They live as long as the real ones: what is written to them must not be lost.
        self.fakes = WeakIdKeyDictionary()
        self.unnoted: dict[int, Tensor] = {}  # real tensors by the id of what stands for them, until an op takes that

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs what is inside on shapes; the modes are gone afterwards, whatever happened."""
        with (
            numbers_of_fakes(self.asking.read, self.asking.whole),
            padding_of_fakes(),
            ctc_of_fakes(),
            untraced(),
            moves_to_absent_devices(),
            attention_on_absent_devices(),
            _quiet(),
            ruled_functions(self.ruled),
            self.uncompiled,
            self.fake,
            self,
        ):
            try:
                yield
            finally:
                self.asked.close()

    def notes(self) -> list[str]:
        """Returns what is to be known of the numbers of this step, in sentences."""
        assumed = [f"{self.asking.assumed} values that optimizers read were taken as 1."] if self.asking.assumed else []
        ruled = [
            f"{name} ran by its shape rule ({counted(calls, 'call')}): what it saves for the backward pass is not "
            "counted."
            for name, calls in self.ruled.items()
        ]
        return [*assumed, *ruled, *self.workspaces.notes(), *([NOTE] if self.uncompiled.is_met else [])]

    def faked(self, real: Tensor) -> Tensor:
        """Returns a new tensor without values of the shape, strides and dtype of a real one."""
        # The mode, which may be on, takes no real tensor; a fake one, of a step before, is none without its dispatch.
        with nullcontext() if isinstance(real, FakeTensor) else torch._C._DisableTorchDispatch():
            alias = real.detach()
        fake: Tensor = self.fake.from_real(alias)
        return fake

    def forget_converted(self) -> None:
        """Lets go of torch's own memory of fake tensors; `fakes` knows those that stand for real ones."""
        self.fake.fake_tensor_converter.meta_converter.tensor_memo.clear()

    def without_dispatch(self, func: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        """Returns what does as `run`, called in the mode above this one, by a shorter way than through torch."""
        if not isinstance(func, OpOverload) or run is not func._op:
            return run

        def ran(*args: Any, **kwargs: Any) -> Any:
            is_next = _get_dispatch_stack_at(_len_torch_dispatch_stack() - 1) is self
            if not is_next or _is_torch_function_mode_enabled():  # there are others on the way
                return run(*args, **kwargs)
            _pop_torch_dispatch_stack(None)
            try:
                return self.__torch_dispatch__(func, (), args, kwargs)
            finally:
                _push_on_torch_dispatch_stack(self)

        return ran

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # An exception from a mode ends the process where torch asks a fake tensor for its device; named ranges of the
        # profiler are no work.
        if not isinstance(func, OpOverload) or func.namespace in ("prim", "profiler"):
            return self._passed(func, args, kwargs)
        outer, self.real = self.real, {}
        try:
            if func is LIFT and type(args[0]) is not FakeTensor and args[0] not in self.fakes:
                self._take(args[0])
            args, kwargs = self._faked(args), as_asked(self._faked(kwargs))
            if func is DETACH and self._is_own(args[0]) and self.watcher.unpacks(func, args):
                out = self.fake.another(args[0])
                self.values.run(func, args, kwargs, out)
                return out
            self.watcher.before(func, args)
            self.alike = None
            out = self._run(func, args, kwargs)
            alike, memories = self.alike, self.memories  # what is told may run ops of its own
            self.values.run(func, args, kwargs, out)
            flops = self.watcher.after(func, args, kwargs, out)
            self.asked.record(func, args, kwargs, out, flops, alike, memories)
            return self._returned(out) if self.real else out
        finally:
            self.real = outer

    def _is_own(self, tensor: Any) -> bool:
        return not self.real and type(tensor) is FakeTensor and tensor.fake_mode is self.fake

    def _passed(self, func: Any, args: Any, kwargs: Any) -> Any:
        if not isinstance(func, HigherOrderOperator):
            return func(*args, **kwargs)
        try:
            return func(*args, **kwargs)
        except NotImplementedError as error:  # torch has no rule of its own for it on fake tensors
            instead = ", or count scaled_dot_product_attention in its place" * func.name().startswith("flex_attention")
            raise CostError(
                f"{func.name()} takes functions, and opcost does not know what it costs{self.asking.place()}; run this "
                f"part outside{instead}."
            ) from error

    def _run(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        rule = self.rules.get(func)
        if rule is None:
            refuse_nested(func._opname.startswith("_nested_tensor_from_"), self.asking.place)
            rule = self.rules[func] = shape_formula(func), func in KEPT
        formula, keeps_more = rule
        if formula is not None:
            return formula(*args, **kwargs)
        if func is ITEM and (value := self.asking.item(args[0])) is not None:
            return value
        try:
            out = self._computed(func, args, kwargs)
            if keeps_more:
                self.alike, out = None, self.workspaces.filled(func, args, out)
            return out
        except NEEDS_VALUES as error:
            out = shaped_by_values(lambda held: self.asking.values_of(func, held), self._computed, func, args, kwargs)
            if out is None and (out := bounded(self._computed, func, args, kwargs)) is not None:
                self.asked.forget(out)
                self.asking.count(self.asking.bounds, func)
            if out is None:
                raise CostError(self.asking.needs_values(func)) from error
            self.alike = None
            return out
        except (UnsupportedOperatorException, NotImplementedError) as error:
            if func.namespace in ("aten", "prims"):
                raise
            raise CostError(
                f"{op_name(func)} has no rule for the shape of its result{self.asking.place()}; give it one "
                "with nbkit.register_shape_formula or torch.library.register_fake."
            ) from error

    def _computed(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        """Runs an op on fake tensors: what calling it would do, without the way through the dispatcher to the mode."""
        if func is LIFT and type(args[0]) is FakeTensor and args[0].fake_mode is self.fake:
            return self.fake.another(args[0])
        mode: Any = torch._C._unset_dispatch_mode(FAKE)
        try:
            out = mode.dispatch(func, (FakeTensor,), args, kwargs)
            self.alike, self.memories = mode.alike, mode.memories
            return out
        finally:
            torch._C._set_dispatch_mode(mode)

    @staticmethod
    @contextmanager
    def _without_fake_mode() -> Iterator[Any]:
        mode: Any = torch._C._unset_dispatch_mode(FAKE)
        try:
            yield mode
        finally:
            torch._C._set_dispatch_mode(mode)

    def _faked(self, value: Any) -> Any:
        kind = type(value)
        if kind is FakeTensor:
            if self.unnoted:
                self.note_stand_in(value)
            return value
        if isinstance(value, Tensor):
            return self._fake_of(value)
        if kind is tuple or kind is list:
            is_noted = not self.unnoted
            for item in value:
                if isinstance(item, Tensor | list | tuple) and not (is_noted and type(item) is FakeTensor):
                    return kind([self._faked(item) for item in value])
        if kind is dict:
            return {name: self._faked(item) for name, item in value.items()} if value else value
        return value

    def _fake_of(self, real: Tensor) -> Any:
        fake = self.seen(real)
        if fake is None:
            fake = self._take(real)
        self.real[id(fake)] = real
        return self._faked(fake)

    def note_stand_in(self, fake: Tensor) -> None:
        """Tells the watcher of what stands for a real tensor, when the first op takes it."""
        if (real := self.unnoted.pop(id(fake), None)) is not None:
            self.watcher.real(real, fake)  # type: ignore[arg-type]
            self.asked.note(real, fake)

    def _take(self, real: Tensor) -> Any:
        """Returns a new fake tensor that stands for a real one as it is."""
        if is_lazy(real):
            raise CostError(
                f"A module of nn.Lazy* has parameters without a shape{self.asking.place()}; call the model once on an "
                "input, which makes them, and then count what it costs."
            )
        refuse_nested(real.is_nested, self.asking.place)
        refuse_shard(real, self.asking.place)
        try:
            with self._without_fake_mode() if real.layout in COMPRESSED else nullcontext():
                fake = self.fakes[real] = self.fake.from_real(real)
        except RecursionError as error:
            raise not_taken(real, self.asking.place()) from error
        self.values.note(real, fake)
        self.watcher.real(real, fake)
        self.asked.note(real, fake)
        return fake

    def seen(self, real: Tensor) -> Any:
        """Returns what stands for a real tensor; None if no op took it yet, and it stays as it is."""
        fake = self.fakes.get(real)
        if fake is None:
            fake = self.stand_in(real)
            if fake is not None:
                self.fakes[real] = fake
                self.values.note(real, fake)
                self.unnoted[id(fake)] = real
        return fake

    def _returned(self, out: Any) -> Any:
        """Returns the result, with the real tensor in place of its fake one: an op in place returns what it took."""
        if isinstance(out, FakeTensor):
            return self.real.get(id(out), out)
        if type(out) in (tuple, list):
            return type(out)([self._returned(item) for item in out])
        return out


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps torch from logging a traceback of its own for what the step raises anyway."""
    torchs = logging.getLogger("torch._subclasses.fake_tensor")
    was = torchs.disabled
    torchs.disabled = True
    try:
        yield
    finally:
        torchs.disabled = was
