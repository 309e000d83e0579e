"""Notes the tensors that autograd saves for the backward pass, with the op that saves each."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import Parameter

from nbkit.capture.cost.fake.fake_mode import FakeMode
from nbkit.capture.cost.fake.fake_step import DETACH
from nbkit.capture.cost.storages import ACTIVATION, BEFORE, TEMPORARY, Storage, Storages
from nbkit.capture.raw.patching import Patch
from nbkit.capture.replay.isolated import isolated
from nbkit.compat.torch_versions import innermost_saved_tensors_hooks

NOT_TOLD = (
    "What torch.func.grad, vjp, jacrev and hessian save for the backward pass is no row of `saved` and counts as "
    "temporary: torch allows no hooks there."
)


@dataclass(slots=True)
class Saved:
    """Describes one saved tensor; `saver` is the slot of the op that saves it."""

    storage: Storage
    saver: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    view_bytes: int
    is_parameter: bool


class WithoutHistory(NamedTuple):
    """Holds the memory of a fake tensor, and what makes another one of it: that costs less than an op."""

    memory: Tensor
    mode: FakeMode
    device: torch.device


class SavedTensors:
    """Collects what autograd saves while its hooks are on; code that sets hooks of its own hides what it saves.

    Autograd saves an op's inputs before it runs the op, and its results after it, as new tensors that a call of
    `aten.detach` makes of them, and where it takes one out, such a call may make a new one. These calls are torch's
    own: `drop` takes the row of a slot back. `meet` returns the memory of a tensor that no op took before.
    """

    def __init__(
        self, storages: Storages, drop: Callable[[int], None], meet: Callable[[Tensor], Storage | None]
    ) -> None:
        self.storages, self.drop, self.meet = storages, drop, meet
        self.saved: list[Saved] = []
        self.last = BEFORE  # slot of the last op but aten.detach
        self.waiting: list[tuple[Saved, int]] = []  # inputs of the op that comes next, by id
        self.detached: int | None = None  # id of what the last op made, if that was aten.detach
        self.unpacked: int | None = None  # id of what was unpacked last, of which torch makes a new tensor
        self.unpacking: int | None = None  # slot of the call that did
        self.hooks = saved_tensors_hooks(self._pack, self._unpack)
        self.notes: list[str] = []

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Sets the hooks for what is inside; where torch asks that there be none, they step aside."""
        patch = Patch(torch.autograd.graph, "disable_saved_tensors_hooks")

        @contextmanager
        def disabled(message: str) -> Iterator[None]:
            is_own = innermost_saved_tensors_hooks() == (self._pack, self._unpack)
            if is_own:
                self.notes = [NOT_TOLD]
                self.hooks.__exit__()
            try:
                with patch.before(message):
                    yield
            finally:
                if is_own:
                    self.hooks.__enter__()

        patch.install(disabled)
        try:
            with self.hooks:
                yield
        finally:
            patch.remove()

    def before(self, func: OpOverload, args: Any, real: Iterable[Tensor]) -> None:
        """Settles which op saves the tensors that wait for one: this one, if it takes them, else the one before.

        `real` are the real tensors among the arguments, for which there are fake ones in `args`.
        """
        if self.waiting:
            taken = {id(arg) for arg in (*_flat(args), *real)}
            for saved, key in self.waiting:
                saved.saver = self.storages.place() if key in taken else self.last
            self.waiting.clear()
        self.detached = None
        if self.unpacking is not None:
            self.drop(self.unpacking)
            self.unpacking = None
        if func is not DETACH:
            self.last = self.storages.place()

    def after(self, func: OpOverload, args: Any, out: Any) -> None:
        """Notes what an op made."""
        if func is DETACH:
            self.detached = id(out)
            if id(args[0]) == self.unpacked:
                self.unpacking = self.storages.place()
        self.unpacked = None

    def _pack(self, tensor: Tensor) -> Tensor | WithoutHistory:
        if id(tensor) == self.detached:
            self.drop(self.storages.place() - 1)
            self._note(tensor, self.last)
            self.detached = None
            return tensor
        if (saved := self._note(tensor, self.storages.place())) is not None:
            self.waiting.append((saved, id(tensor)))
        # A tensor with its history would hold itself: what it is saved for is a part of that.
        return tensor if tensor.grad_fn is None else _without_history(tensor)

    def _note(self, tensor: Tensor, saver: int) -> Saved | None:
        if tensor.is_nested:  # it has no one shape; the op that takes it refuses it
            return None
        held = self.storages.of(tensor)
        if held is None and (held := self.meet(tensor)) is None:
            return None
        if held.kind == TEMPORARY:
            held.kind = ACTIVATION
        view_bytes = tensor.nbytes
        is_parameter = isinstance(tensor, Parameter)
        saved = Saved(held, saver, tensor.dtype, tuple(tensor.shape), view_bytes, is_parameter)
        self.saved.append(saved)
        return saved

    def _unpack(self, kept: Tensor | WithoutHistory) -> Tensor:
        tensor = kept.mode.on(kept.memory, kept.device) if isinstance(kept, WithoutHistory) else kept
        self.unpacked = id(tensor)
        return tensor


def _without_history(tensor: Tensor) -> Tensor | WithoutHistory:
    if type(tensor) is not FakeTensor or type(tensor.fake_mode) is not FakeMode:
        with isolated():
            return tensor.detach()
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), torch.no_grad():
        return WithoutHistory(tensor.detach(), tensor.fake_mode, tensor.fake_device)


def _flat(held: Any) -> Any:
    for item in held:
        if isinstance(item, list | tuple):
            yield from _flat(item)
        else:
            yield item
