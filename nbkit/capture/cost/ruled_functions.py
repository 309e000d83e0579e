"""Runs the shape rules of Python functions in place of these, each as an op of its own, with its gradients."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import get_ident
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from nbkit.capture.operators.hook.replaced import Replaced
from nbkit.capture.operators.hook.targets import Target, targets_of
from nbkit.errors import CostError, OptionError
from nbkit.ops.flops.registry import PYTHON, packet_name

Rule = Callable[..., Any]
LIBRARY = torch.library.Library(PYTHON, "FRAGMENT")
SCHEMA = "{}(Tensor[] tensors) -> Tensor[]"
BACKWARD = "_backward"
_RULES: dict[str, tuple[Target, Rule]] = {}  # by the name of the op that stands for the function
_DEFINED: set[str] = set()  # ops are defined once in a process
_RUNNING: list[Rule] = []  # what the op that is about to run returns for its tensors


def is_function(target: object) -> bool:
    """Returns whether a target of a rule is a function of Python, and no op or name of one."""
    return isinstance(target, FunctionType)


def add_rule(function: Any, rule: Rule) -> None:
    """Adds the rule of a function, or replaces it. Raises OptionError for a function that cannot be replaced."""
    (target,) = targets_of(function)
    if target.holder is None:
        raise OptionError(
            f"{target.name} is torch's own function, which runs on shapes as its ops do; give the rule to the op that "
            "lacks one, such as nbkit.register_shape_formula('mylib.attention')."
        )
    name = packet_name(function).partition(".")[2]
    if name not in _DEFINED:
        _DEFINED.add(name)
        for each in (name, name + BACKWARD):
            LIBRARY.define(SCHEMA.format(each))
        torch.library.register_autograd(f"{PYTHON}::{name}", _backward(name), setup_context=_note_kinds, lib=LIBRARY)
    _RULES[name] = target, rule


def rule_of_running(tensors: list[Tensor]) -> list[Tensor]:
    """Returns what the op of a function returns: the shape formula of all these ops."""
    result: list[Tensor] = _RUNNING.pop()(tensors)
    return result


@contextmanager
def ruled_functions(seen: dict[str, int]) -> Iterator[None]:
    """Puts the rules in the place of their functions while a step runs on shapes, and counts calls by function."""
    with ExitStack() as stack:
        for name, (target, rule) in _RULES.items():
            replaced = Replaced(target, _around(name, target.name, rule, seen))
            stack.callback(replaced.remove)
            replaced.install()
        yield


def _around(op: str, function: str, rule: Rule, seen: dict[str, int]) -> Callable[[Any, Any, Any], Any]:
    thread = get_ident()

    def call(replaced: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if get_ident() != thread:
            return replaced(*args, **kwargs)
        seen[function] = seen.get(function, 0) + 1
        held, arguments = tree_flatten((args, kwargs))
        places = [place for place, value in enumerate(held) if isinstance(value, Tensor)]
        returned: Any = None

        def run(tensors: list[Tensor]) -> list[Tensor]:
            nonlocal returned
            given = [*held]
            for place, tensor in zip(places, tensors, strict=True):
                given[place] = tensor
            taken, named = tree_unflatten(given, arguments)
            # What is given back as it is must not become another tensor's result.
            returned = tree_map_only(Tensor, lambda made: _checked(function, made, tensors), rule(*taken, **named))
            return [value for value in tree_flatten(returned)[0] if isinstance(value, Tensor)]

        made = _run_op(op, [held[place] for place in places], run)
        return tree_map_only(Tensor, lambda _: next(made), returned)

    return call


def _run_op(name: str, tensors: list[Tensor], run: Rule) -> Iterator[Tensor]:
    """Runs the op that stands for a function, or for its gradient, whose results `run` makes."""
    _RUNNING.append(run)
    try:
        return iter(getattr(getattr(torch.ops, PYTHON), name)(tensors))
    finally:
        if run in _RUNNING:  # what runs around ops has failed before it was its turn
            _RUNNING.remove(run)


def _checked(function: str, made: Tensor, tensors: list[Tensor]) -> Tensor:
    if not isinstance(made, FakeTensor):
        raise CostError(
            f"The shape rule of {function} returned a tensor with values, of shape {[*made.shape]}, in a step on "
            "shapes; make what it returns of its arguments: x.new_empty(x.shape)."
        )
    return made.detach() if any(made is tensor for tensor in tensors) else made


def _note_kinds(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.kinds = [(tensor.shape, tensor.dtype, tensor.device) for tensor in inputs[0]]


def _backward(name: str) -> Callable[..., Any]:
    """Returns the gradient of a function: tensors like those that it took, by an op of unknown FLOPs."""

    def backward(ctx: Any, gradients: Any) -> list[Tensor | None]:
        differentiable = [kind for kind in ctx.kinds if kind[1].is_floating_point or kind[1].is_complex]

        def run(tensors: list[Tensor]) -> list[Tensor]:
            return [torch.empty(shape, dtype=dtype, device=device) for shape, dtype, device in differentiable]

        made = _run_op(name + BACKWARD, [gradient for gradient in gradients if gradient is not None], run)
        return [next(made) if kind in differentiable else None for kind in ctx.kinds]

    return backward
