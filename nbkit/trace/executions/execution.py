"""Execution is one run of a model as a graph of results: what made each, what it read, what its values are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbkit.numerics.blocks import same_bits
from nbkit.trace.executions.features import Features, features_in_order, symmetric_of
from nbkit.trace.executions.values import Values

Array = npt.NDArray[np.generic]
# A parameter is trained; a buffer is other state of the model; a constant is in the program itself.
KINDS = ("input", "parameter", "buffer", "constant", "op")


@dataclass(frozen=True, slots=True)
class Result:
    """Describes one tensor of an execution.

    `call` numbers the op that made it, dense in call order, null of what is no op's; `position` says which of the op's
    results it is. `sources` are the result_ids of the tensors that the op reads, in the order of its arguments with
    lists flattened; all results of a call have the same. `module`, `phase`, `source` and `op` are as in the frame ops,
    `arguments` is the JSON object of those that are no tensors. `shape` has whole numbers only: it ran; -1 is a
    ragged size of a nested tensor.
    """

    result_id: int
    kind: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    call: int | None = None
    position: int = 0
    sources: tuple[int, ...] = ()
    op: str | None = None
    module: str | None = None
    phase: str | None = None
    source: str | None = None
    arguments: str | None = None
    features: Features | None = None


class Returned(NamedTuple):
    """Holds what a call without a recorder returns, and another such call; `how` says how it differs: compiled."""

    value: Array
    again: Array | None
    how: str


Recompute = Callable[[Mapping[int, Array], Sequence[int]], Mapping[int, Array]]


@dataclass(frozen=True)
class Execution:
    """Holds the results of a run in an order in which each stands behind what it reads.

    `outputs` are the result_ids of what the model returns, by name or position as text. `recompute` runs the ops once
    more: it takes values that readers of these results get in their place, and the result_ids that are wanted, and
    returns the value of each wanted one that could be computed; null where nothing can run again. A result that is
    itself replaced and wanted is computed from its sources. `error` is the sentence for a run that ended early: the
    results up to there are here. `gradients` has by the result_id of a parameter or input that of its gradient.
    `returned` has, by the name of the output, what a call without a recorder returns where that has other bits.
    `plain` has what the model returns beside tensors, by name: numbers, texts, None, arrays.
    """

    name: str
    origin: str
    results: tuple[Result, ...]
    outputs: Mapping[str, int]
    values: Values = field(default_factory=Values)
    recompute: Recompute | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    gradients: Mapping[int, int] = field(default_factory=dict)
    returned: Mapping[str, Returned] = field(default_factory=dict)
    plain: Mapping[str, object] = field(default_factory=dict)

    def value(self, result_id: int) -> Array | None:
        """Returns the values of a result; null where they were not kept. bfloat16 and float8 come as float32."""
        return self.values.get(result_id)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """Returns for each result the results that were made from it, in order."""
        found: list[list[int]] = [[] for _ in self.results]
        for result in self.results:
            for source in dict.fromkeys(result.sources):
                found[source].append(result.result_id)
        return tuple(map(tuple, found))


class Collector:
    """Collects the results of a run one by one, as they are computed; what it is given it copies or reduces at once."""

    def __init__(self, values: Values | None = None) -> None:
        self.results: list[Result] = []
        self.values = Values() if values is None else values

    def add(self, result: Result, value: Array | None, *, is_own: bool = False) -> int:
        """Adds a result and returns its result_id, which the given one need not have; the value may be null.

        With `is_own`, nothing else will ever write to the value's memory.
        """
        result_id = len(self.results)
        known = None
        if value is not None:
            same = self._same_source(result, value)
            if same is None:
                known = features_in_order(value)
                self.values.put(result_id, value, is_own=is_own)
                if self.values.get(result_id) is None:
                    known = known._replace(symmetric=symmetric_of(value, known))
            else:
                source, known = same
                self.values.put_same(result_id, source, value.shape)
        self.results.append(replace(result, result_id=result_id, features=known))
        return result_id

    def _same_source(self, result: Result, value: Array) -> tuple[int, Features] | None:
        """Returns what a result was made from, if that has the very same elements in the same order: it is a view."""
        for source in result.sources:
            kept, known = self.values.get(source), self.results[source].features
            if kept is not None and known is not None and kept.nbytes == value.nbytes and same_bits(kept, value):
                return source, known
        return None
