"""Checkpoints chosen modules of a step's models, for the time of the step."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

ABSENT = object()


def outermost(model: nn.Module, chosen: Callable[[str], bool]) -> dict[str, nn.Module]:
    """Returns the modules of a model whose path is chosen, and that lie in no other chosen one."""
    found = {path: module for path, module in model.named_modules() if chosen(path)}
    return {path: module for path, module in found.items() if found.keys().isdisjoint(holders(path))}


def holders(path: str) -> list[str]:
    """Returns the paths of the modules that hold the module of a path; the first is the root model's."""
    parts = path.split(".") if path else []
    return [".".join(parts[:length]) for length in range(len(parts))]


@contextmanager
def checkpointed(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Makes the forward pass of modules keep its inputs alone, and run again in the backward pass."""
    kept = [(module, vars(module).get("forward", ABSENT)) for module in modules]
    try:
        for module, _ in kept:
            module.forward = _checkpointed(module.forward)
        yield
    finally:
        for module, forward in kept:
            if forward is ABSENT:
                vars(module).pop("forward", None)
            else:
                module.forward = forward


def checkpoint_code(paths: Mapping[str, Sequence[str]]) -> str:
    """Returns Python whose function checkpoints these modules, by paths in the models of each label; '' for none."""
    if not paths:
        return ""
    names = ["model"] if len(paths) == 1 else [f"model_{number}" for number in range(1, len(paths) + 1)]
    loops = [
        f"""\
    for path in {[*of]!r}:  # {label}
        module = {name}.get_submodule(path)
        module.forward = partial(checkpoint, module.forward, use_reentrant=False)
"""
        for name, (label, of) in zip(names, paths.items(), strict=True)
    ]
    return f"""\
from functools import partial

from torch.utils.checkpoint import checkpoint


def checkpoint_modules({", ".join(names)}):
    \"\"\"Makes modules keep their inputs alone in the forward pass, and run again in the backward pass.\"\"\"
{"".join(loops)}"""


class _Place(NamedTuple):
    """Stands for a tensor among the arguments of a call."""

    number: int


def _checkpointed(forward: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        # What runs again takes tensors anew: one that was given twice has to stay one, as attention tells by that
        # whether queries, keys and values are projected at once.
        tensors = {id(value): value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)}
        places = {key: place for place, key in enumerate(tensors)}
        given = [_Place(places[id(value)]) if id(value) in places else value for value in args]
        named = {name: _Place(places[id(value)]) if id(value) in places else value for name, value in kwargs.items()}

        def again(*distinct: Tensor) -> Any:
            values = [distinct[value.number] if type(value) is _Place else value for value in given]
            by_name = {
                name: distinct[value.number] if type(value) is _Place else value for name, value in named.items()
            }
            return forward(*values, **by_name)

        return checkpoint(again, *tensors.values(), use_reentrant=False)

    return run
