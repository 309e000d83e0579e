"""Lets other optimizers step in place of those of a step, for the time of the step."""

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from nbkit.capture.cost.fake.fake_step import FakeStep
from nbkit.capture.cost.observer import CostObserver
from nbkit.capture.cost.storages import BEFORE, STATE
from nbkit.errors import OptionError

ABSENT = object()
Make = Callable[[list[dict[str, Any]]], Optimizer]


@contextmanager
def on_stand_ins(optimizers: Iterable[Any], step: FakeStep) -> Iterator[None]:
    """Makes optimizers hold what stands for their parameters and for their state."""
    kept = [
        (optimizer, dict(optimizer.state), [group["params"] for group in optimizer.param_groups])
        for optimizer in optimizers
    ]
    try:
        for optimizer, state, groups in kept:
            for group, parameters in zip(optimizer.param_groups, groups, strict=True):
                group["params"] = [_seen(step, parameter) for parameter in parameters]
            optimizer.state.clear()
            optimizer.state.update({_seen(step, key): _seen_state(step, of) for key, of in state.items()})
        yield
    finally:
        for optimizer, state, groups in kept:
            for group, parameters in zip(optimizer.param_groups, groups, strict=True):
                group["params"] = parameters
            optimizer.state.clear()
            optimizer.state.update(state)


def _seen(step: FakeStep, held: Any) -> Any:
    if not isinstance(held, Tensor):
        return held
    fake = step.seen(held)
    return held if fake is None else fake


def _seen_state(step: FakeStep, state: Any) -> Any:
    return {name: _seen(step, value) for name, value in state.items()} if isinstance(state, dict) else state


@contextmanager
def put_back(optimizers: Iterable[Any]) -> Iterator[None]:
    """Puts back how optimizers step, and their options."""
    kept = [
        (optimizer, vars(optimizer).get("step", ABSENT), [dict(group) for group in optimizer.param_groups])
        for optimizer in optimizers
    ]
    try:
        yield
    finally:
        for optimizer, step, groups in kept:
            if step is not ABSENT:
                optimizer.step = step
            else:
                vars(optimizer).pop("step", None)
            for group, options in zip(optimizer.param_groups, groups, strict=True):
                group.update({name: options[name] for name in ("foreach", "fused") if name in options})


def step_otherwise(
    optimizer: Any, make: Make | None, foreach: bool | None, stepped: Set[int], observer: CostObserver
) -> None:
    """Makes an optimizer step as another does, which `make` makes of its parameter groups, until it is put back.

    `stepped` holds the ids of the parameters for which the other has the state that a step leaves. `foreach` sets that
    option.
    Raises OptionError for an optimizer without it, and for what makes none.
    """
    stepping = optimizer
    if make is not None:
        with _unnoted(observer):
            stepping = _made(make, optimizer)
            if stepped:
                _run_one_step(stepping, stepped, observer)
        for state in stepping.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, Tensor):
                    observer.storages.made(value, STATE, BEFORE)
        optimizer.step = _as_wrapped(stepping.step, optimizer)
    if foreach is not None:
        _set_foreach(stepping, foreach)


def _as_wrapped(step: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
    """Returns a step that leaves the marks of the one that it replaces: a scheduler warns where it misses its own."""
    replaced = optimizer.step
    is_scheduled = hasattr(replaced, "_wrapped_by_lr_sched")

    def run(*args: Any, **kwargs: Any) -> Any:
        if is_scheduled:
            optimizer._opt_called = True
        return step(*args, **kwargs)

    vars(run).update(vars(replaced))
    return run


def _made(make: Make, optimizer: Any) -> Optimizer:
    names = ("params", "lr") if isinstance(make, type) else ("params",)
    groups = [{name: group[name] for name in names if name in group} for group in optimizer.param_groups]
    try:
        made = make(groups)
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"No optimizer can be made by optimizer={_name(make)} of parameter groups ({error}); give a class, or a "
            "function such as lambda groups: torch.optim.SGD(groups, lr=0.1)."
        ) from error
    if not isinstance(made, Optimizer):
        raise OptionError(
            f"optimizer={_name(make)} makes a {type(made).__name__}, not an optimizer; give such as torch.optim.SGD."
        )
    return made


def _name(make: Any) -> str:
    return getattr(make, "__qualname__", None) or repr(make)


def _set_foreach(optimizer: Optimizer, foreach: bool) -> None:
    for group in optimizer.param_groups:
        if "foreach" not in group:
            raise OptionError(f"{type(optimizer).__name__} has no option foreach; leave it out.")
        group["foreach"] = foreach
        if foreach and group.get("fused"):
            group["fused"] = False


class _Watcher:
    """Stands in as watcher of a step while nothing is to be counted."""

    def real(self, real: Any, fake: Any) -> None: ...

    def before(self, func: Any, args: Any) -> None: ...

    def after(self, func: Any, args: Any, kwargs: Any, out: Any) -> int:
        return 0

    def unpacks(self, func: Any, args: Any) -> bool:
        return False

    def is_in_optimizer(self) -> bool:
        return True

    def where(self) -> str:
        return ""


@contextmanager
def _unnoted(observer: CostObserver) -> Iterator[None]:
    """Runs ops on shapes of which the recording notes nothing: what they take is met for the first time later."""
    step, asking = observer.step, observer.step.asking
    kept = step.fakes, step.unnoted, asking.assumed, step.watcher
    step.fakes, step.unnoted = WeakIdKeyDictionary(), {}
    step.watcher = asking.watcher = _Watcher()
    try:
        yield
    finally:
        step.fakes, step.unnoted, asking.assumed, step.watcher = kept
        asking.watcher = observer


def _run_one_step(optimizer: Optimizer, stepped: Set[int], observer: CostObserver) -> None:
    every = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    parameters = [parameter for parameter in every if parameter.requires_grad]
    for parameter in parameters:
        observer.kept.note_gradient(parameter)
    gradients = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = torch.empty_like(parameter) if id(parameter) in stepped else None
    optimizer.step()
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
