"""Follows how a difference of two recorded runs spreads: which op it begins at, and which only read what differs.

Known are statistics, not values, so that a difference can hide; what is seen is judged by the inputs of the op. Results
may differ by LEEWAY times as much as the inputs do, or as the coarsest dtype that led there rounds, and by more where
that weighs more in them than in what they come from (conditioning.py). Two right training steps of five models
need up to 27 of these 32, in float32 against float64, bfloat16 against float32 and autocast against float32.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import NamedTuple

from nbkit.divergence.conditioning import conditioning, ratio
from nbkit.divergence.order import OrderChanges
from nbkit.divergence.runs import Read, Tensor
from nbkit.ops.families import DRAWS, DROPOUTS, UNFILLED
from nbkit.ops.names import base_of

LEEWAY = 32.0
FAR = 128.0  # instead, of what two implementations of something made,
MOST_GROWTH = 64.0  # and up to so many LEEWAY where rounding has grown within them
DRAWING = DRAWS | DROPOUTS
UNKNOWN_MEMORY = UNFILLED | {"set"}


class Verdict(NamedTuple):
    """Holds what a row of the alignment says of the values of its op."""

    input_error: float | None = None
    output_error: float | None = None
    allowed_error: float | None = None
    error_class: str | None = None
    origin_id: int | None = None
    message: str | None = None


class MemoryState(NamedTuple):
    """Holds what is known of some memory of one run.

    `eps` is that of the coarsest dtype on the way to it, `level` a difference that was allowed; `origin` is the row at
    which its difference began, and `alone` that of an op that only this run has, within which rounding may have grown
    by `growth`. What `is_empty` was not written yet.
    """

    eps: float = 0.0
    level: float = 0.0
    origin: int | None = None
    alone: int | None = None
    is_empty: bool = False
    growth: float = 1.0


UNKNOWN = MemoryState()


class Cause(NamedTuple):
    """Says where the difference of an input began, and why that is the row at hand, if it is."""

    origin: int
    message: str | None = None


class Spread:
    """Tracks the memory of both runs, as its methods are told of one op after the other.

    `culprits` are the rows of ops without a counterpart at which differences began, with what differs; `unread` those
    of an op in another's place that has another result, which nothing has read so far. `reorderings` are the rows of
    ops that may have changed the order of elements before a result differed, with that result and all rows like them.
    `guesses` are the rows of all ops in another's place that have another result.
    `inherited` has the row at which a difference began that an op reads that adds its own, by the row of that op.
    """

    def __init__(self) -> None:
        self.memories: tuple[dict[int, MemoryState], dict[int, MemoryState]] = ({}, {})
        self.culprits: dict[int, str] = {}
        self.unread: dict[int, str] = {}
        self.order = OrderChanges()
        self.reorderings: dict[int, tuple[str, list[int]]] = {}
        self.guesses: set[int] = set()
        self.inherited: dict[int, int] = {}

    def alone(self, row: int, side: int, op: str, read: list[Tensor], made: list[Tensor]) -> None:
        """Notes an op that only one run has."""
        self.order.alone(row, side, op, read, made)
        memory = self.memories[side]
        known = [memory.get(tensor.storage, UNKNOWN) for tensor in read]
        self._seen(known)
        eps = max([*(state.eps for state in known), *(tensor.eps for tensor in read)], default=0.0)
        level = max((state.level for state in known), default=0.0)
        origin = next((state.origin for state in known if state.origin is not None), None)
        growth = max((state.growth for state in known), default=1.0)
        both = [Read(tensor, tensor, 0.0, "") for tensor in read]
        for tensor in made:
            if not _is_view(tensor, read):
                more = min(growth * conditioning(base_of(op), both, Read(tensor, tensor, 0.0, "")), MOST_GROWTH)
                memory[tensor.storage] = MemoryState(max(eps, tensor.eps), level, origin, row, growth=more)

    def pair(
        self,
        row: int,
        ops: tuple[str, str],
        read: list[Read],
        made: list[Read],
        *,
        is_guess: bool = False,
        has_other_arguments: bool = False,
    ) -> Verdict:
        """Judges an op that both runs have, by its name in each, and notes what it has written.

        With `is_guess` the two are other ops that give the same shapes: what differs then need not be the same thing.
        """
        op = ops[0]
        is_other = has_other_arguments or any(tensor.error > LEEWAY * self._noise(tensor) for tensor in read)
        is_its_own = has_other_arguments or base_of(op) in DRAWING or any(tensor.error == inf for tensor in made)
        suspects = [] if is_its_own else self.order.before(read)
        self.order.pair(row, ops, read, made, is_guess=is_guess, is_other=is_other)
        verdict = self._judge(row, op, read, made, suspects, is_guess=is_guess)
        if verdict.error_class == "clean":
            self.order.agree(op, made)
        return verdict

    def beginning(self, row: int) -> int:
        """Returns the row at which the first difference that led to this one began; the row itself for none."""
        while (before := self.inherited.get(row, row)) != row:
            row = before
        return row

    def _judge(
        self, row: int, op: str, read: list[Read], made: list[Read], suspects: list[int], *, is_guess: bool
    ) -> Verdict:
        packet = base_of(op)
        filled = [tensor for tensor in read if not self._is_empty(tensor)]
        if packet in UNKNOWN_MEMORY or (len(filled) < len(read) and all(_is_seen(tensor, read) for tensor in made)):
            for tensor in made:
                self._note(tensor, MemoryState(is_empty=True))
            return Verdict()
        read = filled
        if not made:
            return Verdict()
        noise = max([*(self._noise(tensor) for tensor in read), *(tensor.eps for tensor in made)])
        known = [memory for tensor in read for memory in self._known(tensor)]
        self._seen(known)
        level = max((memory.level for memory in known), default=0.0)
        before = max((tensor.error for tensor in read), default=0.0)
        factors = [LEEWAY * conditioning(packet, read, tensor) for tensor in made]
        allowed = [max(before, noise) * factor for factor in factors]
        worst = max(range(len(made)), key=lambda number: ratio(made[number].error, allowed[number]))
        verdict = Verdict(before, made[worst].error, allowed[worst], "clean")
        if any(tensor.error > max(noise * factor, 2 * level) for tensor, factor in zip(made, factors, strict=True)):
            if is_guess:
                self.alone(row, 0, op, [tensor.left for tensor in read], [tensor.left for tensor in made])
                self.alone(row, 1, op, [tensor.right for tensor in read], [tensor.right for tensor in made])
                self.guesses.add(row)
                if all(memory.origin is None for memory in known):
                    self.unread[row] = f"its result differs: {made[worst].what}"
                return verdict._replace(error_class=None)
            # Where results agree, other inputs (sums in another order, buffers that are not used) mean nothing.
            causes = [
                cause for number, tensor in enumerate(read) if (cause := self._cause(tensor, number, row)) is not None
            ]
            if causes:
                self.inherited[row] = causes[0].origin
            verdict = _judged(verdict, row, causes, partial(in_words, packet, verdict, made[worst]))
            if verdict.error_class == "local" and suspects:
                self.reorderings[suspects[-1]] = f"{op}: {verdict.message}", suspects
                verdict = verdict._replace(error_class="propagated", origin_id=suspects[-1], message=None)
        self._write(verdict, noise, read, made)
        return verdict

    def _seen(self, known: list[MemoryState]) -> None:
        for memory in known:
            if memory.alone is not None:
                self.unread.pop(memory.alone, None)

    def _known(self, tensor: Read) -> list[MemoryState]:
        """Returns what is known of the memory of a tensor in both runs."""
        ends = zip(self.memories, (tensor.left, tensor.right), strict=True)
        return [memory.get(end.storage, UNKNOWN) for memory, end in ends]

    def _noise(self, tensor: Read) -> float:
        return max(tensor.eps, *(known.eps for known in self._known(tensor)))

    def _cause(self, tensor: Read, number: int, row: int) -> Cause | None:
        """Returns where an input's difference began; None if it does not differ."""
        known = self._known(tensor)
        noise = self._noise(tensor)
        sizes = [noise, *(memory.level for memory in known)]
        if all(memory.alone is not None for memory in known):
            sizes.append(noise * max(FAR / LEEWAY, *(memory.growth for memory in known)))
        if tensor.error <= LEEWAY * max(sizes):
            return None
        for memory in known:
            if memory.origin is not None:
                return Cause(memory.origin)
        for memory in known:
            if memory.alone is not None:
                self.culprits[memory.alone] = f"what reads its result differs: {tensor.what}"
                return Cause(memory.alone)
        what = f"input {number}{f' ({tensor.left.name})' if tensor.left.name else ''} differs, "
        is_from_outside = known == [UNKNOWN, UNKNOWN]
        why = "and no recorded op made it" if is_from_outside else "though the op that made it agrees"
        self.memories[0][tensor.left.storage] = MemoryState(noise, 0.0, row)
        return Cause(row, f"{what}{why}: {tensor.what}")

    def _write(self, verdict: Verdict, noise: float, read: list[Read], made: list[Read]) -> None:
        is_clean = verdict.error_class == "clean"
        sources = [memory.origin for tensor in read for memory in self._known(tensor) if memory.origin is not None]
        origin = verdict.origin_id if verdict.origin_id is not None else next(iter(sources), None)
        for tensor in made:
            # A view of what agrees is the memory that it was.
            if not (is_clean and _is_seen(tensor, read)):
                self._note(tensor, MemoryState(noise, tensor.error if is_clean else 0.0, origin))

    def _note(self, tensor: Read, memory: MemoryState) -> None:
        self.memories[0][tensor.left.storage] = self.memories[1][tensor.right.storage] = memory

    def _is_empty(self, tensor: Read) -> bool:
        """Returns whether nobody knows what is in a tensor: memory was taken for it, and nothing written to it."""
        return all(memory.is_empty for memory in self._known(tensor))


def _judged(verdict: Verdict, row: int, causes: list[Cause], message: Callable[[], str]) -> Verdict:
    """Returns the same with its class and origin, and with a message where something begins."""
    assert verdict.output_error is not None and verdict.allowed_error is not None
    message_of_input = next((cause.message for cause in causes if cause.message is not None), None)
    if message_of_input is not None:
        return verdict._replace(error_class="input", origin_id=row, message=message_of_input)
    if verdict.output_error > verdict.allowed_error:
        return verdict._replace(error_class="both" if causes else "local", origin_id=row, message=message())
    return verdict._replace(error_class="propagated", origin_id=causes[0].origin) if causes else verdict


def in_words(packet: str, verdict: Verdict, tensor: Read) -> str:
    """Returns how the result of an op differs, `tensor`, in words."""
    if tensor.left.numel != tensor.right.numel:
        return f"its result has the shape {tensor.left.shape}, there {tensor.right.shape}"
    if packet in DRAWING:
        return f"it draws random numbers, with another seed ({tensor.what}); give both runs the same one"
    errors = f"{verdict.input_error:.2g} at most, those of its result by {verdict.output_error:.2g}"
    return f"the statistics of its inputs differ by {errors}: {tensor.what}"


def _is_seen(made: Read, read: list[Read]) -> bool:
    """Returns whether a result is another tensor on the memory of an input."""
    return _is_view(made.left, [tensor.left for tensor in read])


def _is_view(made: Tensor, read: list[Tensor]) -> bool:
    """Returns whether a result is another tensor on the memory of an input."""
    return any(tensor.storage == made.storage for tensor in read) and all(
        tensor.tensor_id != made.tensor_id for tensor in read
    )
