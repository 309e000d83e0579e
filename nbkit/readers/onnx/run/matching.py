"""Matches given inputs with those of an ONNX model that has other names: by name, else by dtype and shape, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, permutations, product
from typing import TYPE_CHECKING, Any

from nbkit.errors import OptionError
from nbkit.readers.onnx.run.inputs import as_declared, given_text, listed
from nbkit.readers.onnx.run.parse import model_of

if TYPE_CHECKING:
    from onnx import ValueInfoProto

# Inputs of equal dtype and shape are tried in so many further orders.
MOST_ORDERS = 24
Declared = Mapping[str, "ValueInfoProto"]


@dataclass(frozen=True)
class Matched:
    """Says which of the given inputs each input of a model gets: `pairs` leads from its names to those given.

    `equal` has the names in groups of which each fits each other's place, so that nothing but the order told them
    apart; in none is one that has the name under which it was given.
    """

    pairs: Mapping[str, str]
    equal: tuple[tuple[str, ...], ...] = ()

    def text(self) -> str:
        """Returns 'x to a, y to b': which given input went to which input of the model."""
        return ", ".join(f"{given} to {name}" for name, given in self.pairs.items())

    def orders(self) -> Iterator[Matched]:
        """Yields the other orders of those of equal dtype and shape, MOST_ORDERS at most."""
        every = product(*(permutations(self.pairs[name] for name in group) for group in self.equal))
        for order in islice(every, 1, MOST_ORDERS + 1):
            placed = zip(self.equal, order, strict=True)
            moved = {name: one for group, given in placed for name, one in zip(group, given, strict=True)}
            yield Matched({**self.pairs, **moved}, self.equal)


def declared_inputs(model: object) -> tuple[dict[str, ValueInfoProto], frozenset[str]]:
    """Returns the inputs that a model must be given, by name, and the names of all that it may be given."""
    graph = model_of(model)[0].graph
    held = {tensor.name for tensor in graph.initializer} | {item.values.name for item in graph.sparse_initializer}
    return {value.name: value for value in graph.input if value.name not in held}, frozenset(
        value.name for value in graph.input
    )


def matched(declared: Declared, given: Mapping[str, Any]) -> Matched:
    """Returns which given one each declared input gets. Raises OptionError where that cannot be told."""
    fits = {
        name: [one for one in given if _is_tensor(value) and as_declared(value, given[one]) is not None]
        for name, value in declared.items()
    }
    named = {name for name in declared if name in fits[name]}
    makers: dict[str, str] = {}  # from what is given to the input that gets it

    def place(name: str, tried: set[str]) -> bool:
        """Gives an input the first that is free, else has another input give way: an augmenting path."""
        for one in sorted(fits[name], key=makers.__contains__):
            if one not in named and one not in tried:
                tried.add(one)
                if one not in makers or place(makers[one], tried):
                    makers[one] = name
                    return True
        return False

    rest = [name for name in declared if name not in named]
    if len(given) != len(declared) or not all(place(name, set()) for name in rest):
        raise OptionError(
            f"its inputs cannot be told from those given, by name or by dtype and shape: the model has "
            f"{listed(declared)}; given are {given_text(given)}. Give right_inputs, each under its name."
        )
    found = {name: one for one, name in makers.items()}
    pairs = {name: found.get(name, name) for name in declared}
    return Matched(pairs, tuple(_equal(rest, pairs, fits)))


def _equal(rest: list[str], pairs: Mapping[str, str], fits: Mapping[str, list[str]]) -> Iterator[tuple[str, ...]]:
    """Yields groups of inputs that may change places."""
    groups: list[list[str]] = []
    for name in rest:
        fitting = (
            group for group in groups if all(pairs[name] in fits[one] and pairs[one] in fits[name] for one in group)
        )
        group = next(fitting, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    yield from (tuple(group) for group in groups if len(group) > 1)


def _is_tensor(value: ValueInfoProto) -> bool:
    return bool(value.type.WhichOneof("value") == "tensor_type")
