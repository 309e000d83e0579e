"""Follows which ops may have put elements into another order in one run only, which statistics do not show."""

from nbkit.divergence.runs import Read, Tensor
from nbkit.ops.families import FUSED_ATTENTION, REORDERS, family
from nbkit.ops.names import base_of

# Their results are the same only of elements in one order.
ORDERED = family("PRODUCTS CONVOLUTIONS")
# These keep the order of elements, and say which dimension they belong to.
RESHAPING = family("RESHAPES PARTS")
MOST = 8  # rows kept per tensor

Rows = tuple[int, ...]


class OrderChanges:
    """Tracks for each tensor of both runs the rows of such ops that it comes from, since both last agreed for sure."""

    def __init__(self) -> None:
        self.rows: tuple[dict[int, Rows], dict[int, Rows]] = ({}, {})

    def alone(self, row: int, side: int, op: str, read: list[Tensor], made: list[Tensor]) -> None:
        """Notes an op that only one run has."""
        self._note(side, made, self._before(side, read) | ({row} if base_of(op) in REORDERS else set()))

    def pair(
        self, row: int, ops: tuple[str, str], read: list[Read], made: list[Read], *, is_guess: bool, is_other: bool
    ) -> None:
        """Notes an op of both runs: `is_guess` if it is another in each, `is_other` if it has or reads other things."""
        packets = {base_of(op) for op in ops}
        suspicious = REORDERS if is_guess else REORDERS | RESHAPING if is_other else frozenset[str]()
        new = {row} if packets & suspicious else set()
        for side, (inputs, results) in enumerate(zip(_sides(read), _sides(made), strict=True)):
            self._note(side, results, self._before(side, inputs) | new)

    def agree(self, op: str, made: list[Read]) -> None:
        """Notes that both runs have the same result of an op; a product has the same only of elements in one order."""
        packet = base_of(op)
        if packet in ORDERED or packet.startswith(FUSED_ATTENTION):
            for side, results in enumerate(_sides(made)):
                self._note(side, results, set())

    def before(self, read: list[Read]) -> list[int]:
        """Returns the rows that these inputs of an op come from, in call order."""
        return sorted(set().union(*(self._before(side, inputs) for side, inputs in enumerate(_sides(read)))))

    def _before(self, side: int, read: list[Tensor]) -> set[int]:
        return {row for tensor in read for row in self.rows[side].get(tensor.tensor_id, ())}

    def _note(self, side: int, made: list[Tensor], rows: set[int]) -> None:
        for tensor in made:
            self.rows[side][tensor.tensor_id] = tuple(sorted(rows)[-MOST:])


def _sides(tensors: list[Read]) -> tuple[list[Tensor], list[Tensor]]:
    return [tensor.left for tensor in tensors], [tensor.right for tensor in tensors]
