"""Finds which left parameters the right ones are: wave by wave along the dataflow, by what the right execution gives.

A wave is all parameters that wait for no other one on both sides. Each way to place them is tried: those whose results
the left execution has most of are kept, and told apart by the waves behind them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from nbkit.analysis.align.copying.choices import (
    Sides,
    Unit,
    fits,
    is_contradicted,
    is_in_step,
    names_of,
    steps_of,
    template,
)
from nbkit.analysis.align.copying.layouts import Option
from nbkit.analysis.align.copying.trial import Outcome, Placement, Trials, mask_of
from nbkit.analysis.align.copying.uses import Use, Uses
from nbkit.trace.executions.execution import Array

# So many ways to place a wave are tried, and so many placements are followed.
MOST_WAYS, MOST_PLACEMENTS = 240, 16
# A placement with so many known results less than another one is not followed.
MOST_BEHIND = 40


class Search:
    """Searches placements of the parameters of two sides."""

    def __init__(self, sides: Sides, trials: Trials) -> None:
        self.sides, self.trials = sides, trials
        self.all_right = mask_of(sides.right.first)

    def run(self) -> list[Placement]:
        """Returns the placements that the most results speak for, the most likely first."""
        open_ones, finished = [Placement()], list[Placement]()
        while open_ones:
            made: list[Placement] = []
            for placement in open_ones:
                if self.all_right & ~placement.done[1]:
                    made += self._next(placement)
                else:
                    finished.append(placement)
            open_ones = self._best(made)
        finished.sort(key=lambda placement: (placement.rank, placement.cost))
        best = [placement for placement in finished if placement.rank == finished[0].rank]
        # Where all that is returned agrees, what was dropped on the way is no doubt any more.
        first = replace(best[0], doubted=0) if self.agrees(best[0]) else best[0]
        return [self._with_doubts(first, best), *best[1:]]

    def agrees(self, placement: Placement) -> bool:
        """Returns whether all results of the right execution are those of the left one."""
        returned = {number for number in self.trials.returned if self.sides.right.side.eps[number] > 0}
        return bool(returned) and not placement.is_forced and returned <= placement.known

    def _best(self, placements: list[Placement]) -> list[Placement]:
        """Returns the placements to follow; what is dropped and as good is a doubt about those that stay."""
        placements.sort(key=lambda placement: (placement.rank, placement.cost))
        different: dict[tuple[object, ...], Placement] = {}
        for placement in placements:
            key = tuple((number, option.digest) for number, option in sorted(placement.placed.items()))
            different.setdefault((key, placement.done), placement)
        kept = [one for one in different.values() if one.rank[0] <= placements[0].rank[0] + MOST_BEHIND]
        stay, rest = kept[:MOST_PLACEMENTS], kept[MOST_PLACEMENTS:]
        return [self._with_doubts(one, [other for other in rest if other.rank == one.rank]) for one in stay]

    def _with_doubts(self, placement: Placement, others: list[Placement]) -> Placement:
        doubted = placement.doubted
        for other in others:
            for number, option in placement.placed.items():
                another = other.placed.get(number)
                if another is None or another.digest != option.digest:
                    doubted |= 1 << number
        return replace(placement, doubted=doubted)

    def _next(self, placement: Placement) -> list[Placement]:
        """Returns what a placement may go on to: the next wave placed, or where nothing fits, one side left out."""
        ready = self.sides.ready_left(placement)
        waiting = self.sides.ready_right(placement)
        if made := self._wave(placement, waiting, ready, strict=True):
            return made
        loose = self._wave(placement, waiting, ready, strict=False)
        proved = [each for each in loose if each.rank < placement.rank]
        if proved and all(self._is_learned(placement, each) for each in proved):
            return proved
        return [*proved, self._left_out(placement, waiting, ready)]

    def _is_learned(self, placement: Placement, following: Placement) -> bool:
        """Returns whether what was placed is what was placed in a layer before."""
        new = following.placed.keys() - placement.placed.keys()
        pairs = [(template(self.sides.right.first[number].name), names_of(following.placed[number])) for number in new]
        return all(pair in placement.learned for pair in pairs)

    def _left_out(self, placement: Placement, waiting: list[list[Use]], ready: list[Use]) -> Placement:
        """Returns the placement without what waits on the right, or on the left where the right's comes later there."""
        later = [use for use in self.sides.left.all if not placement.done[0] >> use.number & 1 and use not in ready]
        comes_later = any(
            self._form(self.sides.left, other) == self._form(self.sides.right, use)
            and not is_contradicted(placement, template(use.name), (template(other.name),))
            for unit in waiting
            for use in unit
            for other in later
        )
        unused = [use for use in ready if not placement.done[0] >> use.number & 1]
        if comes_later and unused:
            mask = mask_of(use.number for use in unused)
            taken = {**placement.taken, **{(use.number, use.role): list[Option]() for use in unused}}
            done = placement.done[0] | mask, placement.done[1]
            return replace(placement, taken=taken, done=done, is_forced=True, is_skewed=True)
        mask = mask_of(use.number for unit in waiting for use in unit)
        outcome = self.trials.run(placement, {}, {}, more=mask)
        done = (placement.done[0], placement.done[1] | mask)
        values = {**placement.values, **outcome.values}
        return replace(placement, done=done, values=values, is_forced=True, is_skewed=True)

    def _form(self, uses: Uses, use: Use) -> tuple[object, ...]:
        return (use.role, sum(use.shape), use.numel, uses.signatures[use.number, use.role])

    def _wave(
        self, placement: Placement, waiting: list[list[Use]], ready: list[Use], *, strict: bool
    ) -> list[Placement]:
        """Returns the best ways to place what waits on the right by what is ready on the left."""
        choices = self._choices(placement, waiting, ready, strict=strict)
        if not choices:
            return []
        forced: dict[int, Array] = {}
        for unit, options in choices:
            forced |= self._forced(placement, unit, options)
        found = self._tried(placement, [options for _, options in choices], {})
        if forced and not any(outcome.found for _, outcome in found):
            again = self._tried(placement, [options for _, options in choices], forced)
            if any(outcome.found for _, outcome in again):
                found, placement = again, replace(placement, is_forced=True)
        # Parts and channels in another order show as products that are known and lead to nothing that is.
        if any(outcome.found for _, outcome in found) and not any(outcome.reaches for _, outcome in found):
            given = forced if placement.is_forced else {}
            if placement.learned:
                unlearned = replace(placement, learned={})
                others = self._choices(unlearned, waiting, ready, strict=strict)
                found = self._better(found, self._tried(placement, [options for _, options in others], given))
            found = self._better(found, self._reordered(placement, [options for _, options in choices], given))
        return [self._placed(placement, way, outcome, forced) for way, outcome in found]

    def _choices(
        self, placement: Placement, waiting: list[list[Use]], ready: list[Use], *, strict: bool
    ) -> list[tuple[list[Use], list[Unit]]]:
        """Returns what each op that waits may be given, of those that may be given something."""
        pairs = ((unit, self.sides.units(placement, unit, ready, strict=strict)) for unit in waiting)
        return [(unit, options) for unit, options in pairs if options]

    def _better(
        self, found: list[tuple[Unit, Outcome]], again: list[tuple[Unit, Outcome]]
    ) -> list[tuple[Unit, Outcome]]:
        """Returns the ways with more results that are known; the first ones where there are not more."""
        return again if again and len(again[0][1].found) > len(found[0][1].found) else found

    def _forced(self, placement: Placement, unit: list[Use], options: list[Unit]) -> dict[int, Array]:
        """Returns the left value of what a unit reads, for where the right one is another: what is behind it is judged.

        A difference before it is no reason not to know what follows.
        """
        activation = unit[0].activation
        current = placement.values.get(activation)
        if not placement.is_forced and activation in placement.known:
            return {}
        shape = self.sides.right.execution.results[activation].shape
        for option in options[0].values():
            for use in self.sides.left.all:
                if (use.number, use.role) == (option.sources[0].number, option.sources[0].role):
                    value = self.sides.left.execution.value(use.activation)
                    result = self.sides.left.execution.results[use.activation]
                    if value is not None and result.shape[-1:] == shape[-1:] and value.size == _size(shape):
                        return {activation: value.reshape(shape)} if current is not value else {}
        return {}

    def _tried(
        self, placement: Placement, choices: list[list[Unit]], forced: Mapping[int, Array]
    ) -> list[tuple[Unit, Outcome]]:
        """Returns the ways to place a wave of which the left execution has most, with their outcomes."""
        narrowed = [self._most(placement, options, forced) for options in choices]
        ways = list(islice(_ways(placement, narrowed), MOST_WAYS))
        found = [(way, self.trials.run(placement, way, forced)) for way in ways]
        most = max((len(outcome.found) for _, outcome in found), default=0)
        return [(way, outcome) for way, outcome in found if len(outcome.found) == most]

    def _most(self, placement: Placement, options: list[Unit], forced: Mapping[int, Array]) -> list[Unit]:
        """Returns the options for one op that give the most results that the left one has; all where none gives one."""
        if len(options) == 1:
            return options
        counts = [len(self.trials.run(placement, option, forced).found) for option in options]
        return [option for option, count in zip(options, counts, strict=True) if count == max(counts)]

    def _reordered(
        self, placement: Placement, choices: list[list[Unit]], forced: Mapping[int, Array]
    ) -> list[tuple[Unit, Outcome]]:
        """Returns ways with channels in the order of another rotary layout; none where nothing has heads."""
        more = [
            [*options, *self.sides.reordered(placement, self._most(placement, options, forced))] for options in choices
        ]
        is_more = any(len(one) > len(other) for one, other in zip(more, choices, strict=True))
        return self._tried(placement, more, forced) if is_more else []

    def _placed(self, placement: Placement, way: Unit, outcome: Outcome, forced: Mapping[int, Array]) -> Placement:
        """Returns the placement with a wave placed."""
        after = placement.done[1] | mask_of(way)
        taken, left_done = dict(placement.taken), placement.done[0]
        learned, layouts, doubted = dict(placement.learned), set(placement.layouts), placement.doubted
        cost = placement.cost
        for number, option in way.items():
            for source in option.sources:
                taken[source.number, source.role] = [*taken.get((source.number, source.role), []), option]
                left_done |= 1 << source.number
            name = self.sides.right.first[number].name
            if placement.is_skewed and not is_in_step(placement, name, option) and not self._is_alone(option):
                doubted |= 1 << number
            cost += self.sides.cost(number, option)
        proved = 0
        for number in outcome.found if not placement.is_forced else ():
            proved |= self.sides.right.made_of[number]
        placed = {**placement.placed, **way}
        learnt = mask_of(way) if outcome.found and placement.is_forced else proved & ~placement.proved
        for number, option in placed.items() if not placement.is_skewed else ():
            if learnt >> number & 1:
                name = self.sides.right.first[number].name
                pair = template(name), names_of(option)
                learned[pair] = learned.get(pair, frozenset()) | {steps_of(name, option)}
                layouts.add((template(name), option.layout))
        count = len(outcome.found)
        values = {**placement.values, **(forced if placement.is_forced else {}), **outcome.values}
        return replace(
            placement,
            placed=placed,
            done=(left_done, after),
            taken=taken,
            values={number: value for number, value in values.items() if self.trials.is_read_later(number, after)},
            known=placement.known | outcome.found,
            rank=(
                placement.rank[0] - count * (not placement.is_forced),
                placement.rank[1] - count * placement.is_forced,
            ),
            cost=cost,
            proved=placement.proved | (proved & after),
            doubted=doubted,
            learned=learned,
            layouts=frozenset(layouts),
        )

    def _is_alone(self, option: Option) -> bool:
        """Returns whether no other left parameter has the form of the one that is taken."""
        forms = Counter(self._form(self.sides.left, use) for use in self.sides.left.all)
        mine = [use for use in self.sides.left.all if use.number == option.sources[0].number]
        return any(use.role == option.sources[0].role and forms[self._form(self.sides.left, use)] == 1 for use in mine)


def _ways(placement: Placement, choices: list[list[Unit]]) -> Iterator[Unit]:
    """Yields one option for each op, so that none takes what another one has."""
    if not choices:
        yield {}
        return
    is_any = False
    for unit in choices[0]:
        taken = dict(placement.taken)
        if not all(fits(taken, option) for option in unit.values()):
            continue
        for option in unit.values():
            for source in option.sources:
                taken[source.number, source.role] = [*taken.get((source.number, source.role), []), option]
        for rest in _ways(replace(placement, taken=taken), choices[1:]):
            is_any = True
            yield {**unit, **rest}
    if not is_any:
        yield from _ways(placement, choices[1:])


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
