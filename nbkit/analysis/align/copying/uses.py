"""Tells where each parameter of an execution is used: by which op, in what role, and behind which other parameters."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from nbkit.analysis.align.side import Side
from nbkit.ops.kinds import LOOKUPS, NORMS, PASSING, op_kind
from nbkit.ops.names import bare_name
from nbkit.trace.executions.execution import Execution, Result

# Roles that are no product over channels.
SHIFT, GAIN, TABLE = "shift", "gain", "table"
TURNING = PASSING - {"reshape", "expand"}
_ROLES = {
    "add": SHIFT,
    "subtract": SHIFT,
    "multiply": GAIN,
    "divide": GAIN,
    "convolution": "convolution",
    "matmul": "matrix",
}


@dataclass(frozen=True)
class Use:
    """Says where a parameter meets what is computed from the inputs.

    `meets` is the result of the op, `activation` the other operand. `needs` has a bit for each parameter that the other
    operands are made of, by number of the parameter; those that meet the activation in the same op are left out.
    `is_turned` says of the operand of a plain product whether it is the parameter transposed; null of other ops.
    """

    number: int
    result_id: int
    name: str
    shape: tuple[int, ...]
    role: str
    meets: int
    call: int
    activation: int
    needs: int
    is_turned: bool | None

    @property
    def is_product(self) -> bool:
        """Returns whether it is summed over channels."""
        return self.role not in (SHIFT, GAIN, TABLE)

    @property
    def numel(self) -> int:
        return prod(self.shape)


class Uses:
    """Holds the uses of those parameters and buffers of an execution that have one of the names."""

    def __init__(self, execution: Execution, names: Collection[str]) -> None:
        self.execution = execution
        self.side = Side(execution)
        known = frozenset(names)
        self.states = [
            result.result_id
            for result in execution.results
            if result.kind in ("parameter", "buffer") and result.name in known
        ]
        self.number = {state: number for number, state in enumerate(self.states)}
        # Of each result a bit per parameter that it is made of, and whether it is made of an input, too.
        self.made_of: list[int] = []
        self.is_activation: list[bool] = []
        for result in execution.results:
            own = 1 << self.number[result.result_id] if result.result_id in self.number else 0
            is_backward = result.phase not in (None, "forward")
            self.is_activation.append(
                not is_backward
                and (result.kind == "input" or any(self.is_activation[source] for source in result.sources))
            )
            for source in result.sources:
                own |= self.made_of[source]
            self.made_of.append(own)
        self.all = list(self._uses())
        self.first: dict[int, Use] = {}
        for use in self.all:
            self.first.setdefault(use.number, use)

    def _uses(self) -> Iterator[Use]:
        """Yields one use per parameter and role, in the order of execution."""
        seen = set[tuple[int, str]]()
        self.meetings = Counter[int]()
        for result in self.execution.results:
            if not self.is_activation[result.result_id] or result.kind != "op" or result.position:
                continue
            others = [source for source in result.sources if self.is_activation[source]]
            held = [source for source in result.sources if not self.is_activation[source] and self.made_of[source]]
            meeting = 0
            for source in held:
                meeting |= self.made_of[source]
            needs = 0
            for source in others:
                needs |= self.made_of[source]
            for place, source in enumerate(result.sources):
                for number in bits(self.made_of[source]) if source in held else ():
                    role = role_of(result, place)
                    self.meetings[number] += 1
                    if (number, role) in seen:
                        continue
                    seen.add((number, role))
                    state = self.execution.results[self.states[number]]
                    call = -1 if result.call is None else result.call
                    where = (role, result.result_id, call, others[0], needs & ~meeting & ~(1 << number))
                    turned = self._is_turned(result, source)
                    yield Use(number, state.result_id, state.name, state.shape, *where, turned)

    def _is_turned(self, result: Result, source: int) -> bool | None:
        """Returns whether the operand of mm or addmm is a parameter transposed; null where that is not clear."""
        if bare_name(result.op) not in ("mm", "addmm") or result.sources[-1] != source:
            return None
        turns = 0
        while (made := self.execution.results[source]).kind == "op":
            if len(made.sources) != 1 or self.side.does[source] not in TURNING:
                return None
            turns += self.side.does[source] == "permute"
            source = made.sources[0]
        return bool(turns % 2)

    @property
    def steps(self) -> int:
        """Returns how often most parameters are used: as many times as there are tokens, where they come one by one."""
        return Counter(self.meetings.values()).most_common(1)[0][0] if self.meetings else 1

    @cached_property
    def signatures(self) -> dict[tuple[int, str], int]:
        """Returns for each use the elements of the products that follow it next: what it leads to."""
        products = [use for use in self.all if use.is_product]
        by_number = {use.number: use for use in products}
        found: dict[tuple[int, str], int] = {(use.number, use.role): 0 for use in self.all}
        for product in products:
            direct = product.needs
            for number in bits(product.needs):
                other = by_number.get(number)
                if other is not None and other.meets < product.meets:
                    direct &= ~other.needs
            for use in self.all:
                if direct >> use.number & 1 and use.meets < product.meets:
                    found[use.number, use.role] += product.numel
        return found

    def new_results(self, before: int, after: int) -> list[int]:
        """Returns the activations that are made of the parameters `after` and not of those `before` alone, as bits."""
        return [
            number
            for number, made in enumerate(self.made_of)
            if self.is_activation[number] and not made & ~after and made & ~before
        ]


def bits(mask: int) -> Iterator[int]:
    """Yields the numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def role_of(result: Result, place: int) -> str:
    """Returns what the operand at a place is to an op, in words that different ops share."""
    does = op_kind(result.op)
    if does in LOOKUPS:
        return TABLE
    if does in NORMS:
        return {1: GAIN, 2: SHIFT}.get(place, f"{does} {place}")
    name = bare_name(result.op)
    if does == "matmul" and ((name in ("addmm", "baddbmm") and place == 0) or (name == "linear" and place == 2)):
        return SHIFT
    if does == "convolution" and place == 2:
        return SHIFT
    return _ROLES.get(does, f"{does} {place}")
