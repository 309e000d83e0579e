"""Numbers values: equal are those that the same op made of the same values, with nothing written since."""

from collections import Counter
from collections.abc import Hashable

from nbkit.step.step import Call, Step

UNKNOWN = (None, 0)


class Numbering:
    """Tells which values are the same, by what made them."""

    def __init__(self, step: Step) -> None:
        self.tensors, self.memory = step.tensor_ids.tolist(), step.memory.tolist()
        self.is_written = step.is_written.tolist()
        self.forget()

    def forget(self) -> None:
        """Begins anew."""
        self.first: dict[Hashable, int] = {}
        # By tensor: op and result that made it, and how often its memory had been written then.
        self.values: dict[int, tuple[Hashable, int]] = {}
        self.writes: Counter[int] = Counter()

    def note(self, call: Call, what: Hashable) -> int:
        """Notes an op; returns the first one that computed the same."""
        first = self.first.setdefault((what, *map(self._value, call.inputs)), call.op_id)
        for at, row in enumerate(call.outputs):
            self.writes[self.memory[row]] += self.is_written[row]
            self.values[self.tensors[row]] = ((first, at), self.writes[self.memory[row]])
        return first

    def _value(self, row: int) -> Hashable:
        """Returns what stands for the values of a tensor: what made them; else the tensor as it is now."""
        made, writes = self.values.get(self.tensors[row], UNKNOWN)
        now = self.writes[self.memory[row]]
        return made if made is not None and writes == now else ("tensor", self.tensors[row], now)
