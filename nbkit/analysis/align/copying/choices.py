"""Lists what the parameters that meet in one op of the right execution may be, of those that the left one has next."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from nbkit.analysis.align.copying.layouts import AS_IT_IS, Option, Source, Target, options_of, reordered
from nbkit.analysis.align.copying.trial import Names, Placement
from nbkit.analysis.align.copying.uses import SHIFT, Use, Uses
from nbkit.trace.executions.execution import Array

# So many options of one op are tried, at most.
MOST_OPTIONS = 96
# Words for the parts of a block by which names are told apart where numbers cannot.
WORDS = {
    "query": "q wq query queries",
    "key": "k wk key keys",
    "value": "v wv value values",
    "gate": "gate gates w1",
    "up": "up ups w3",
    "down": "down downs w2",
}
_WORDS = {name: word for word, names in WORDS.items() for name in names.split()}
Unit = dict[int, Option]


@dataclass(frozen=True)
class Sides:
    """Holds the uses of both sides, and the left values by name; `same_names` are right names by left ones."""

    left: Uses
    right: Uses
    values: Mapping[str, Array]
    left_name: Callable[[str], str | None]

    @cached_property
    def divisors(self) -> list[int]:
        """Returns lengths of axes of either side, by which parts may be interleaved."""
        sides = (self.left, self.right)
        found = {size for side in sides for result in side.execution.results for size in result.shape}
        return sorted(size for size in found if size > 1)

    @cached_property
    def head_sizes(self) -> list[int]:
        """Returns even lengths of the last axis of right results that are split by heads."""
        shapes = [result.shape for result in self.right.execution.results if len(result.shape) > 3]
        return sorted({shape[-1] for shape in shapes if shape[-1] > 2 and shape[-1] % 2 == 0})

    def ready_right(self, placement: Placement) -> list[list[Use]]:
        """Returns the right uses that wait for no other parameter, those of one op together."""
        units: dict[int, list[Use]] = {}
        for number, use in self.right.first.items():
            if not placement.done[1] >> number & 1 and not use.needs & ~placement.done[1]:
                units.setdefault(use.call, []).append(use)
        return list(units.values())

    def ready_left(self, placement: Placement) -> list[Use]:
        """Returns the left uses that wait for no other parameter and are not taken, with those added right behind."""
        done = placement.done[0]
        free = [use for use in self.left.all if not is_taken(placement, use)]
        ready = [use for use in free if not use.needs & ~done]
        soon = done
        for use in ready:
            soon |= 1 << use.number
        return ready + [use for use in free if use.needs & ~done and use.role == SHIFT and not use.needs & ~soon]

    def units(self, placement: Placement, unit: list[Use], ready: list[Use], *, strict: bool) -> list[Unit]:
        """Returns what the parameters of one op may be together; one without an option is left out."""
        waiting = [use for one in self.ready_right(placement) for use in one]
        of_each: list[tuple[int, list[Option]]] = []
        for use in sorted(unit, key=lambda use: (not use.is_product, use.number)):
            lengths = {size for each in waiting if each.role == use.role for size in each.shape}
            options = list(islice(self._options(placement, use, ready, lengths, strict=strict), MOST_OPTIONS))
            if options:
                of_each.append((use.number, self._as_learned(placement, use, options, strict=strict)))
        found: list[Unit] = [{}]
        for number, options in of_each:
            found = [{**made, number: option} for made in found for option in fitting(made, options)]
        return [made for made in found if made][:MOST_OPTIONS]

    def _options(
        self, placement: Placement, use: Use, ready: list[Use], lengths: set[int], *, strict: bool
    ) -> Iterator[Option]:
        target = Target(use.shape, use.is_turned)
        mine = self.right.signatures[use.number, use.role]
        sources = [
            Source(other.number, other.role, other.name, self.values[other.name], other.is_turned)
            for other in ready
            if other.role == use.role and (not strict or self.left.signatures[other.number, other.role] == mine)
        ]
        for option in options_of(target, sources, lengths, self.divisors):
            if fits(placement.taken, option):
                yield option

    def _as_learned(self, placement: Placement, use: Use, options: list[Option], *, strict: bool) -> list[Option]:
        """Returns the options that are as in a layer before; where none is, those that contradict nothing."""
        mine = template(use.name)
        same = [option for option in options if (mine, names_of(option)) in placement.learned]
        return same or [
            option for option in options if not is_contradicted(placement, mine, names_of(option), strict=strict)
        ]

    def reordered(self, placement: Placement, units: list[Unit]) -> Iterator[Unit]:
        """Yields units with channels in the order of another rotary layout, of learned names only as it was learned."""
        learned = dict[str, set[tuple[str, int]]]()
        for name, layout in placement.layouts:
            learned.setdefault(name, set()).add(layout)
        for unit in units:
            for made in self._reordered(unit):
                known = [learned.get(template(self.right.first[number].name)) for number in made]
                if all(of is None or one.layout in of for of, one in zip(known, made.values(), strict=True)):
                    yield made

    def _reordered(self, unit: Unit) -> Iterator[Unit]:
        weights = [number for number in unit if self.right.first[number].is_product]
        if len(weights) != 1 or unit[weights[0]].value.ndim != 2:
            return
        axis = -1 if self.right.first[weights[0]].is_turned is False else 0
        rows = unit[weights[0]].value.shape[axis]
        for size in self.head_sizes:
            for to_neighbors in (True, False) if rows % size == 0 else ():
                yield {
                    number: reordered(one, rows // size, axis if one.value.ndim > 1 else 0, to_neighbors=to_neighbors)
                    for number, one in unit.items()
                }

    def cost(self, number: int, option: Option) -> float:
        """Returns how little the names and the layout speak for an option: where numbers cannot tell, least wins."""
        name = self.right.first[number].name
        cost = 0.0 if option.how == AS_IT_IS else 0.1 + 0.01 * option.groups.bit_length()
        if self.left_name(name) == option.sources[0].name:
            return cost
        words = word_of(name), word_of(option.sources[0].name)
        return cost + (0.2 if words[0] and words[0] == words[1] else 1.0)


def names_of(option: Option) -> Names:
    """Returns the names that an option takes without the numbers of layers."""
    return tuple(template(source.name) for source in option.sources)


def is_contradicted(placement: Placement, right: str, left: Names, *, strict: bool = True) -> bool:
    """Returns whether in a layer before both names were placed, but not with each other; else one of them."""
    pairs = placement.learned.keys()
    known = any(pair[0] == right for pair in pairs), any(not set(left).isdisjoint(pair[1]) for pair in pairs)
    return (right, left) not in pairs and (all(known) if strict else any(known))


def is_in_step(placement: Placement, name: str, option: Option) -> bool:
    """Returns whether the numbers in the names of both sides are as far apart as where the same was placed before."""
    return steps_of(name, option) in placement.learned.get((template(name), names_of(option)), ())


def steps_of(name: str, option: Option) -> tuple[int, ...]:
    """Returns how far apart the numbers in the names of both sides are; empty where there are not as many."""
    mine, other = ([int(each) for each in re.findall(r"\d+", one)] for one in (name, option.sources[0].name))
    return tuple(b - a for a, b in zip(mine, other, strict=True)) if len(mine) == len(other) else ()


def template(name: str) -> str:
    """Returns a name without its numbers: that of the same parameter in each layer."""
    return re.sub(r"\d+", "#", name)


def word_of(name: str) -> str | None:
    """Returns which part of a block a parameter belongs to, where its name says it."""
    parts = [part for part in re.split(r"[._]", name) if part in _WORDS]
    return _WORDS[parts[-1]] if parts else None


def fitting(made: Unit, options: list[Option]) -> list[Option]:
    """Returns the options for a bias that go with those for the weight: of the same modules, in the same layout."""
    if not made:
        return options
    first = next(iter(made.values()))

    def is_alike(option: Option) -> bool:
        modules = [source.name.rpartition(".")[0] for source in option.sources]
        others = [source.name.rpartition(".")[0] for source in first.sources]
        return modules == others and option.part == first.part and option.groups == first.groups

    used = {source.number for option in made.values() for source in option.sources}
    rest = [option for option in options if not any(source.number in used for source in option.sources)]
    return [option for option in rest if is_alike(option)] or rest


def fits(taken: Mapping[tuple[int, str], list[Option]], option: Option) -> bool:
    """Returns whether what an option takes is not taken yet."""
    for source in option.sources:
        for other in taken.get((source.number, source.role), []):
            if other.part is None or option.part is None or other.groups != option.groups:
                return False
            if option.part[0] < other.part[1] and other.part[0] < option.part[1]:
                return False
    return True


def is_taken(placement: Placement, use: Use) -> bool:
    """Returns whether all of a left parameter is taken, or it has no place."""
    options = placement.taken.get((use.number, use.role))
    if options is None:
        return False
    if not options:
        return True
    if options[0].part is None:
        return True
    return sum(option.part[1] - option.part[0] for option in options if option.part) >= options[0].total
