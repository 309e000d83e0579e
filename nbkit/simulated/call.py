"""Holds one call of an op on CPU tensors, with its earlier inputs and its results, so that it can be redone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_iter, tree_map_only

Results = list[Tensor]


class NotApplicableError(Exception):
    """Says why a kind of fault cannot befall an op."""


@dataclass
class Call:
    """Holds an op, its arguments and, once run, its results: the tensors it wrote, then the ones it made.

    `before` holds copies of the written tensors; `inputs` and `named_inputs` are the arguments with those in place.
    """

    func: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    before: dict[int, Tensor] = field(init=False)
    results: Results = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.before = {id(tensor): tensor.clone() for tensor in written(self.func, self.args, self.kwargs)}

    @cached_property
    def name(self) -> str:
        """Returns the name of the op without namespace, overload and the underscore of the in-place form: add."""
        return str(self.func._schema.name.partition("::")[2]).rstrip("_")

    @property
    def inputs(self) -> list[Any]:
        return [self._as_before(arg) for arg in self.args]

    @property
    def named_inputs(self) -> dict[str, Any]:
        return {name: self._as_before(arg) for name, arg in self.kwargs.items()}

    def argument(self, name: str) -> Any:
        """Returns an argument by its name in the schema, its default if it was left out, None if there is none."""
        for position, argument in enumerate(self.func._schema.arguments):
            if argument.name == name:
                if name in self.kwargs or position < len(self.args):
                    return self._as_before(self.kwargs[name] if name in self.kwargs else self.args[position])
                return argument.default_value
        return None

    def run(self) -> Any:
        """Returns what the op returns, done on the true arguments; notes the results."""
        out = self.func(*self.args, **self.kwargs)
        self.results = self.results_of(self.args, self.kwargs, out)
        return out

    def check_computes(self) -> None:
        """Raises NotApplicableError for an op without values of its own: a view of an input, memory not yet written."""
        if self.name.startswith(("empty", "new_empty")):
            raise NotApplicableError(f"{self.func} makes memory and writes nothing into it")
        memories = {tensor.untyped_storage()._cdata for tensor in tensors_in((self.args, self.kwargs))}
        for result in self.results:
            if id(result) not in self.before and result.untyped_storage()._cdata in memories:
                raise NotApplicableError(f"{self.func} gives a view of its input and computes nothing")

    def rerun(self, changed: Mapping[str, Any]) -> Results:
        """Returns the op's results with some arguments changed, by their names in the schema; the true ones stay."""
        args, kwargs = tree_map_only(Tensor, Tensor.clone, (self.inputs, self.named_inputs))
        for position, argument in enumerate(self.func._schema.arguments):
            if argument.name in changed:
                if position < len(args):
                    args[position] = changed[argument.name]
                else:
                    kwargs[argument.name] = changed[argument.name]
        return self.results_of(args, kwargs, self.func(*args, **kwargs))

    def results_of(self, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> Results:
        wrote = list(written(self.func, args, kwargs))
        known = {id(tensor) for tensor in wrote}
        return [*wrote, *(tensor for tensor in tensors_in(out) if id(tensor) not in known)]

    def _as_before(self, value: Any) -> Any:
        return tree_map_only(Tensor, lambda tensor: self.before.get(id(tensor), tensor), value)


def written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Tensor]:
    """Yields the tensors that the op writes into, in the order of its schema."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.is_write:
            yield from tensors_in(kwargs.get(argument.name, args[position] if position < len(args) else None))


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yields the tensors in arguments or a result, however nested."""
    return (leaf for leaf in tree_iter(value) if isinstance(leaf, Tensor))
