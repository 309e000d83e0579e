"""Shows a step tensors of other sizes and of another dtype in place of its real ones, which stay as they are."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import Parameter

from nbkit.capture.cost.fake.fake_step import FakeStep
from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.pausable_mode import PausableMode
from nbkit.capture.replay.isolated import isolated

Shape = tuple[int, ...]


class StandIns:
    """Makes the tensors that stand for real ones.

    `resized` gives the sizes of an input from its shape. `own` holds by id the tensors that are no inputs: buffers, and
    what optimizers hold; `counters` those of them that keep their dtype. A dtype counts for floating tensors.
    """

    def __init__(
        self,
        resized: Callable[[Shape], Shape],
        dtype: torch.dtype | None,
        own: Mapping[int, object],
        counters: Mapping[int, object],
    ) -> None:
        self.resized, self.dtype, self.own, self.counters = resized, dtype, own, counters
        self.resized_from: dict[Shape, Shape] = {}
        self.casts = 0

    def of(self, fake: Any, real: Tensor) -> FakeTensor | None:
        """Returns a new tensor without values, of the mode `fake`; None for a real one that stays as it is."""
        shape, dtype = tuple(real.shape), real.dtype
        is_input = not isinstance(real, Parameter) and id(real) not in self.own
        if is_input:
            shape = self.resized(shape)
        if self.dtype is not None and real.is_floating_point() and id(real) not in self.counters:
            dtype = self.dtype
        if (shape == tuple(real.shape) and dtype == real.dtype) or real.layout is not torch.strided:
            return None
        if shape != tuple(real.shape):
            self.resized_from[tuple(real.shape)] = shape
        self.casts += dtype != real.dtype
        return _stand_in(fake, real, shape, dtype)


def _stand_in(fake: Any, real: Tensor, shape: Shape, dtype: torch.dtype) -> FakeTensor:
    with isolated():
        made = FakeTensor(fake, _empty(real, shape, dtype), real.device)
        if isinstance(real, Parameter):
            made._is_param = True  # what makes an instance of Parameter
        made.requires_grad_(real.requires_grad)
        if real.is_leaf and real.requires_grad and real.grad is not None:
            made.grad = FakeTensor(fake, _empty(real, shape, dtype), real.device)
    return made


def _empty(real: Tensor, shape: Shape, dtype: torch.dtype) -> Tensor:
    """Returns a tensor without memory whose dimensions lie in memory in the order of those of a real one."""
    strides, step = [0] * len(shape), 1
    for dim in sorted(range(len(shape)), key=lambda dim: (real.stride(dim), -dim)):
        strides[dim], step = step, step * max(shape[dim], 1)
    return torch.empty_strided(shape, strides, dtype=dtype, device="meta")


class StandInMode(PausableMode):
    """Hands each function of torch, and each property of a tensor, what stands for the real tensors that it is given.

    A step that reads the shape of its input reads the other one, too. The backward pass runs code of the user with the
    mode off, and calls of custom autograd functions come past it: both are patched while it is on.
    """

    def __init__(self, step: FakeStep) -> None:
        super().__init__()
        self.step = step
        self.unchanged = torch.utils.weak.WeakIdKeyDictionary()
        self.engine = Patch(torch.autograd, "_engine_run_backward")
        self.apply: Any = None

    def __enter__(self) -> "StandInMode":
        self.engine.install(self._run_backward())
        self.apply = vars(torch.autograd.Function)["apply"]
        seen, apply = self.seen, self.apply.__func__

        def applied(cls: Any, *args: Any, **kwargs: Any) -> Any:
            return apply(cls, *seen(args), **seen(kwargs))

        torch.autograd.Function.apply = classmethod(applied)  # type: ignore[assignment, method-assign]
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        torch.autograd.Function.apply = self.apply  # type: ignore[method-assign]
        self.engine.remove()

    def _run_backward(self) -> Callable[..., Any]:
        engine, is_on, push, pop = self.engine, self.is_on, self._push, self._pop

        def run(*args: Any, **kwargs: Any) -> Any:
            if is_on():
                return engine.before(*args, **kwargs)
            push()
            try:
                return engine.before(*args, **kwargs)
            finally:
                pop()

        return run

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*self.seen(args), **self.seen(kwargs or {}))

    def seen(self, held: Any) -> Any:
        """Returns arguments with what stands for the real tensors in them."""
        kind = type(held)
        if kind is FakeTensor:
            return held
        if isinstance(held, Tensor):
            return self._seen(held)
        if kind is tuple or kind is list:
            items = [self.seen(item) for item in held]
            is_same = all(new is old for new, old in zip(items, held, strict=True))
            return held if is_same else kind(items)
        if kind is dict:
            return {name: self.seen(item) for name, item in held.items()}
        return held

    def _seen(self, real: Tensor) -> Tensor:
        if real in self.unchanged:
            return real
        with torch._C.DisableTorchFunction():
            fake = self.step.seen(real)
            if fake is None or (fake.shape == real.shape and fake.dtype == real.dtype):
                self.unchanged[real] = True
                return real
        stand_in: Tensor = fake
        return stand_in
