"""Decides which left parameters the right ones are to be given, and says of the others why not."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nbkit.analysis.align.copying.choices import Sides, word_of
from nbkit.analysis.align.copying.known import KnownValues
from nbkit.analysis.align.copying.layouts import AS_IT_IS, Option
from nbkit.analysis.align.copying.search import Search
from nbkit.analysis.align.copying.trial import Placement, Trials
from nbkit.analysis.align.copying.uses import Uses
from nbkit.analysis.align.matching.by_value import tolerance_of
from nbkit.trace.executions.execution import Array, Execution

# So many ways that fit are named.
MOST_NAMED = 3


@dataclass(frozen=True, eq=False)
class Copied:
    """Says what a right parameter is given: which left ones in which layout, and by what evidence.

    The evidence is "values" where what it leads to is what the left one gives, else "place" or "name".
    """

    left: tuple[str, ...]
    right: str
    how: str
    evidence: str
    value: Array


@dataclass(frozen=True)
class NotCopied:
    """Says of a parameter of one side why it is not paired; the other side is null where it has none like it."""

    left: str | None
    right: str | None
    reason: str


@dataclass(frozen=True)
class Decision:
    """Holds what is copied and what is not; `agrees` says whether all that is returned was computed the same."""

    copied: tuple[Copied, ...]
    not_copied: tuple[NotCopied, ...]
    agrees: bool


State = Mapping[str, Array]


def decide(
    left: Execution, right: Execution, left_state: State, right_state: State, tied: Mapping[str, str]
) -> Decision:
    """Returns which parameters and buffers of the right side are given which of the left one.

    The states hold values by name, tied ones once; `tied` has the names of the left one's that are held under another.
    """
    uses = Uses(left, left_state), Uses(right, right_state)
    names = same_names({**dict.fromkeys(left_state), **tied}, right_state)
    sides = Sides(*uses, left_state, lambda name: tied.get(names.get(name, ""), names.get(name)))
    numbers = [number for number, made in enumerate(uses[0].made_of) if made and uses[0].is_activation[number]]
    tolerance = tolerance_of(uses[0].side, uses[1].side)
    known = KnownValues(uses[0].side, numbers, tolerance, (uses[0].steps, uses[1].steps))
    search = Search(sides, Trials(uses[1], known))
    placements = search.run()
    decider = _Decider(sides, right_state, placements)
    copied = tuple(decider.copied())
    agrees = search.agrees(placements[0]) and len(copied) == len(right_state)
    return Decision(copied, tuple(decider.not_copied(copied)), agrees)


class _Decider:
    """Turns the placements that were found into what is copied."""

    def __init__(self, sides: Sides, right_state: State, placements: list[Placement]) -> None:
        self.sides, self.right_state, self.best, self.others = sides, right_state, placements[0], placements[1:]
        self.number = {use.name: number for number, use in sides.right.first.items()}
        options = self.best.placed.values()
        self.taken = {source.name for option in options for source in option.sources}

    def copied(self) -> list[Copied]:
        """Returns what is copied, in the order of the right side."""
        found = {name: option for name in self.right_state if (option := self._placed(name)) is not None}
        modules = {_module(name): _module(one.left[0]) for name, one in found.items() if len(one.left) == 1}
        for name in self.right_state:
            if name not in found and (named := self._named(name, modules)) is not None:
                found[name] = named
        return [found[name] for name in self.right_state if name in found]

    def _placed(self, name: str) -> Copied | None:
        """Returns what was found by place, if nothing else does as well."""
        number = self.number.get(name)
        option = None if number is None else self.best.placed.get(number)
        if number is None or option is None:
            return None
        left = tuple(source.name for source in option.sources)
        evidence = "values" if self.best.proved >> number & 1 else "place"
        if self.best.doubted >> number & 1:
            if self._is_named(name, option):
                evidence = "name"
            elif not self._is_last_of_its_module(name, option):
                return None
        return Copied(left, name, option.how, evidence, option.value)

    def _is_named(self, name: str, option: Option) -> bool:
        """Returns whether names say that the option is the one, and no other one that does as well is named so."""
        if option.how != AS_IT_IS:
            return False
        source = option.sources[0].name
        word = word_of(name)
        return self.sides.left_name(name) == source or (word is not None and word == word_of(source))

    def _is_last_of_its_module(self, name: str, option: Option) -> bool:
        """Returns whether all other parameters of a module are placed, and this one is what is left of theirs."""
        mine = [other for other in self.right_state if _module(other) == _module(name)]
        theirs = [other for other in self.sides.values if _module(other) == _module(option.sources[0].name)]
        rest = [self.number.get(other, -1) for other in mine if other != name]
        options = [self.best.placed.get(number) for number in rest if not self.best.doubted >> max(number, 0) & 1]
        taken = {one.sources[0].name for one in options if one is not None and one.how == AS_IT_IS}
        is_whole = len(mine) == len(theirs) > 1 and len(taken) == len(rest)
        return is_whole and option.how == AS_IT_IS and set(theirs) == {option.sources[0].name, *taken}

    def _named(self, name: str, modules: Mapping[str, str]) -> Copied | None:
        """Returns the free parameter of the same name, or that of the module which others of the same module have."""
        module, _, leaf = name.rpartition(".")
        beside = f"{modules[module]}.{leaf}".removeprefix(".") if module in modules else None
        for other, evidence in ((self.sides.left_name(name), "name"), (beside, "place")):
            if other is None or other in self.taken or other not in self.sides.values:
                continue
            value = self.sides.values[other]
            if value.shape == self.right_state[name].shape:
                self.taken.add(other)
                return Copied((other,), name, AS_IT_IS, evidence, value)
        return None

    def not_copied(self, copied: Collection[Copied]) -> Iterator[NotCopied]:
        """Yields what is left over on the right, then on the left."""
        done = {one.right for one in copied}
        said = set[str]()
        for name, value in self.right_state.items():
            if name in done:
                continue
            other = self.sides.left_name(name)
            if other is not None and other not in self.sides.values:
                other = None
            what = f"{name} {shape_of(value)}"
            placed = self._placed_options(name)
            if placed:
                said.update(source.name for option in placed for source in option.sources)
                yield NotCopied(None, name, f"right {what} was left as it is: {_fits(placed)}.")
            elif other is not None and self.sides.values[other].shape != value.shape:
                said.add(other)
                found = shape_of(self.sides.values[other])
                yield NotCopied(other, name, f"right {what} was left as it is: left {other} is {found}.")
            else:
                yield NotCopied(None, name, f"right {what} was left as it is: nothing on the left is in its place.")
        used = {name for one in copied for name in one.left} | said
        for name, value in self.sides.values.items():
            if name not in used:
                yield NotCopied(name, None, f"left {name} {shape_of(value)} has no place on the right.")

    def _placed_options(self, name: str) -> list[Option]:
        """Returns what a right parameter may be in the placements that as much speaks for."""
        number = self.number.get(name, -1)
        return [one.placed[number] for one in (self.best, *self.others) if number in one.placed]


def _fits(options: list[Option]) -> str:
    """Returns in words what fits equally well."""
    texts = dict.fromkeys(f"{' and '.join(one.name for one in option.sources)}, {option.how}" for option in options)
    first, more = "; ".join([*texts][:MOST_NAMED]), len(texts) - MOST_NAMED
    if len(texts) == 1:
        return f"it is not clear that it is {first}"
    return f"these fit equally well: {first}" + (f", and {more} more" if more > 0 else "")


def _module(name: str) -> str:
    return name.rpartition(".")[0]


def shape_of(value: Array) -> str:
    """Returns a shape as text."""
    return f"({', '.join(map(str, value.shape))})"


def same_names(left: Collection[str], right: Collection[str]) -> dict[str, str]:
    """Returns the left names by the right ones that are equal, where either may have a prefix that all of it have."""
    best: dict[str, str] = {}
    for left_prefix in ("", _common_prefix(left)):
        for right_prefix in ("", _common_prefix(right)):
            bare = {name.removeprefix(left_prefix): name for name in left}
            found = {
                name: bare[name.removeprefix(right_prefix)] for name in right if name.removeprefix(right_prefix) in bare
            }
            if len(found) > len(best):
                best = found
    return best


def _common_prefix(names: Collection[str]) -> str:
    """Returns the first part of the names with its dot, if all have the same."""
    firsts = {name.partition(".")[0] for name in names if "." in name}
    return f"{firsts.pop()}." if len(firsts) == 1 and all("." in name for name in names) else ""


def is_equal(one: Copied, value: Array) -> bool:
    """Returns whether a right parameter has its values already."""
    return bool(np.array_equal(one.value, value))
