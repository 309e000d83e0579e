"""Reads the epsilon of a norm from the arguments of the ops that one side runs inside a region."""

from dataclasses import dataclass

import numpy as np

from nbkit.analysis.align.kinds.case import CaseSide, Floats
from nbkit.analysis.align.region import Piece
from nbkit.ops.kinds import ROOTS, op_kind
from nbkit.step.decode import arguments_of

EPSILON_ARGUMENTS = ("eps", "epsilon", "variance_epsilon")
# What is added before a root, and where no root is seen.
LARGEST, USUAL = 1.0, 1e-2


@dataclass(frozen=True)
class Epsilon:
    """Holds an epsilon, and whether it is added to the root rather than to what the root is taken of."""

    value: float
    is_outside: bool = False

    def divisor(self, squares: Floats) -> Floats:
        """Returns what a norm divides by, of what it takes the root of."""
        if self.is_outside:
            return np.asarray(np.sqrt(squares) + self.value)
        return np.sqrt(np.maximum(squares + self.value, 1e-300))


def recorded_epsilon(side: CaseSide) -> Epsilon | None:
    """Returns the epsilon of a side's ops; null where they have none, or several."""
    made = {piece.result.result_id: piece for piece in (*side.inputs, *side.ops)}
    found = {epsilon for piece in side.ops if (epsilon := _epsilon(piece, side.ops, made)) is not None}
    return found.pop() if len(found) == 1 else None


def _epsilon(piece: Piece, ops: tuple[Piece, ...], made: dict[int, Piece]) -> Epsilon | None:
    result = piece.result
    if result.kind != "op" or result.op is None:
        return None
    arguments = arguments_of(result.arguments)
    numbers = [arguments[name] for name in EPSILON_ARGUMENTS if isinstance(arguments.get(name), int | float)]
    if numbers:
        return Epsilon(float(numbers[0]))
    if op_kind(result.op) != "add" or (value := _added(piece, arguments.get("other"), made)) is None:
        return None
    before = [op_kind(made[source].result.op) for source in result.sources if source in made]
    behind = [op_kind(one.result.op) for one in ops if result.result_id in one.result.sources]
    if any(does == "sqrt" for does in before):
        return Epsilon(value, is_outside=True)
    is_epsilon = any(does in ROOTS for does in behind) or (piece is ops[-1] and value <= USUAL)
    return Epsilon(value) if is_epsilon else None


def _added(piece: Piece, other: object, made: dict[int, Piece]) -> float | None:
    """Returns the small number that an op adds: its argument, or a value of one element; null if it adds none."""
    numbers = [float(other)] if isinstance(other, int | float) and not isinstance(other, bool) else []
    values = [made[source].value for source in piece.result.sources if source in made]
    if len(values) > 1:
        numbers += [float(np.real(value.reshape(-1)[0])) for value in values if value is not None and value.size == 1]
    return numbers[0] if len(numbers) == 1 and 0 <= numbers[0] <= LARGEST else None
