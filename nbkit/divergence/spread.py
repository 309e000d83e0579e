"""How a difference of two recorded runs spreads: which op it begins at, and which only read what differs already.

Known are statistics, not values, so that a difference can hide; what is seen is judged by the inputs of the op. Results
may differ by LEEWAY times as much as the inputs do, or as the coarsest dtype that led there rounds, and by more where
that weighs more in them than in what they come from (conditioning.py). Two right training steps of five models
need up to 27 of these 32, in float32 against float64, bfloat16 against float32 and autocast against float32.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from nbkit.divergence.alignment import packet_of
from nbkit.divergence.conditioning import conditioning, ratio
from nbkit.divergence.runs import Read, Tensor

LEEWAY = 32.0
DRAWING = frozenset(
    "rand randn randint rand_like randn_like randint_like randperm bernoulli multinomial normal uniform exponential "
    "native_dropout random geometric cauchy log_normal".split()
)
# Nobody knows what is in these.
UNINITIALISED = frozenset("empty empty_like empty_strided new_empty new_empty_strided resize set".split())


class Found(NamedTuple):
    """What a row of the alignment says of the values of its op."""

    input_error: float | None = None
    output_error: float | None = None
    allowed_error: float | None = None
    error_class: str | None = None
    origin_id: int | None = None
    message: str | None = None


class Memory(NamedTuple):
    """What is known of some memory of one run.

    `eps` is that of the coarsest dtype on the way to it, `level` a difference that was allowed; `origin` is the row at
    which its difference began, and `alone` that of an op that only this run has.
    """

    eps: float = 0.0
    level: float = 0.0
    origin: int | None = None
    alone: int | None = None


UNKNOWN = Memory()


class Cause(NamedTuple):
    """Where the difference of an input began, and why that is the row at hand, if it is."""

    origin: int
    given: str | None = None


class Spread:
    """What is known of the memory of both runs, as its methods are told of one op after the other.

    `culprits` are the rows of ops without a counterpart at which differences began, with what differs; `unread` those
    of an op in another's place that has another result, which nothing has read so far.
    """

    def __init__(self) -> None:
        self.memories: tuple[dict[int, Memory], dict[int, Memory]] = ({}, {})
        self.culprits: dict[int, str] = {}
        self.unread: dict[int, str] = {}

    def alone(self, row: int, side: int, read: list[Tensor], made: list[Tensor]) -> None:
        """Take note of an op that only one run has."""
        memory = self.memories[side]
        known = [memory.get(one.storage, UNKNOWN) for one in read]
        self._seen(known)
        eps = max([*(one.eps for one in known), *(one.eps for one in read)], default=0.0)
        level = max((one.level for one in known), default=0.0)
        origin = next((one.origin for one in known if one.origin is not None), None)
        for one in made:
            if not _is_view(one, read):
                memory[one.storage] = Memory(max(eps, one.eps), level, origin, row)

    def pair(self, row: int, op: str, read: list[Read], made: list[Read], *, is_guess: bool = False) -> Found:
        """Judge an op that both runs have, and take note of what it has written.

        With `is_guess` the two are other ops that give the same shapes: what differs then need not be the same thing.
        """
        packet = packet_of(op)
        if packet in UNINITIALISED or not made:
            return Found()
        noise = max([*(self._noise(one) for one in read), *(one.eps for one in made)])
        known = [memory for one in read for memory in self._known(one)]
        self._seen(known)
        level = max((memory.level for memory in known), default=0.0)
        before = max((one.error for one in read), default=0.0)
        factors = [LEEWAY * conditioning(packet, read, one) for one in made]
        allowed = [max(before, noise) * factor for factor in factors]
        worst = max(range(len(made)), key=lambda number: ratio(made[number].error, allowed[number]))
        found = Found(before, made[worst].error, allowed[worst], "clean")
        if any(one.error > max(noise * factor, 2 * level) for one, factor in zip(made, factors, strict=True)):
            if is_guess:
                self.alone(row, 0, [one.left for one in read], [one.left for one in made])
                self.alone(row, 1, [one.right for one in read], [one.right for one in made])
                if all(memory.origin is None for memory in known):
                    self.unread[row] = f"its result differs: {made[worst].what}"
                return found._replace(error_class=None)
            # Where results agree, other inputs (sums in another order, buffers that are not used) mean nothing.
            causes = [cause for number, one in enumerate(read) if (cause := self._cause(one, number, row)) is not None]
            found = _judged(found, row, causes, partial(_message, packet, found, made[worst]))
        self._write(found, noise, read, made)
        return found

    def _seen(self, known: list[Memory]) -> None:
        for memory in known:
            if memory.alone is not None:
                self.unread.pop(memory.alone, None)

    def _known(self, one: Read) -> list[Memory]:
        """What is known of the memory of a tensor in both runs."""
        ends = zip(self.memories, (one.left, one.right), strict=True)
        return [memory.get(tensor.storage, UNKNOWN) for memory, tensor in ends]

    def _noise(self, one: Read) -> float:
        return max(one.eps, *(known.eps for known in self._known(one)))

    def _cause(self, one: Read, number: int, row: int) -> Cause | None:
        """Where an input's difference began; None if it does not differ."""
        known = self._known(one)
        if one.error <= LEEWAY * max(self._noise(one), *(memory.level for memory in known)):
            return None
        for memory in known:
            if memory.origin is not None:
                return Cause(memory.origin)
        for memory in known:
            if memory.alone is not None:
                self.culprits[memory.alone] = f"what reads its result differs: {one.what}"
                return Cause(memory.alone)
        what = f"input {number}{f' ({one.left.name})' if one.left.name else ''} differs, "
        is_from_outside = known == [UNKNOWN, UNKNOWN]
        why = "and no recorded op made it" if is_from_outside else "though the op that made it agrees"
        self.memories[0][one.left.storage] = Memory(self._noise(one), 0.0, row)
        return Cause(row, f"{what}{why}: {one.what}")

    def _write(self, found: Found, noise: float, read: list[Read], made: list[Read]) -> None:
        is_clean = found.error_class == "clean"
        sources = [memory.origin for one in read for memory in self._known(one) if memory.origin is not None]
        origin = found.origin_id if found.origin_id is not None else next(iter(sources), None)
        for one in made:
            # A view of what agrees is the memory that it was.
            if not (is_clean and _is_view(one.left, [each.left for each in read])):
                memory = Memory(noise, one.error if is_clean else 0.0, origin)
                self.memories[0][one.left.storage] = self.memories[1][one.right.storage] = memory


def _judged(found: Found, row: int, causes: list[Cause], message: Callable[[], str]) -> Found:
    """The same with its class and origin, and with a message where something begins."""
    assert found.output_error is not None and found.allowed_error is not None
    given = next((cause.given for cause in causes if cause.given is not None), None)
    if given is not None:
        return found._replace(error_class="input", origin_id=row, message=given)
    if found.output_error > found.allowed_error:
        return found._replace(error_class="both" if causes else "local", origin_id=row, message=message())
    return found._replace(error_class="propagated", origin_id=causes[0].origin) if causes else found


def _message(packet: str, found: Found, one: Read) -> str:
    if one.left.numel != one.right.numel:
        return f"its result has the shape {one.left.shape}, there {one.right.shape}"
    if packet in DRAWING:
        return f"its draws differ ({one.what}); give both runs the same seed"
    return f"its inputs differ by {found.input_error:.2g} at most, its result by {found.output_error:.2g}: {one.what}"


def _is_view(made: Tensor, read: list[Tensor]) -> bool:
    """Whether a result is another tensor on the memory of an input."""
    return any(one.storage == made.storage for one in read) and all(one.tensor_id != made.tensor_id for one in read)
