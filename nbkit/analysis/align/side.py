"""Side prepares one execution for matching: its features as arrays, what its ops do, and which results are the same."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.matches import Match
from nbkit.numerics.blocks import BLOCK
from nbkit.numerics.precision import precision_of
from nbkit.ops.families import UNFILLED
from nbkit.ops.kinds import EXACT, MASK_ENDS, MASK_STEPS, PASSING, op_kind
from nbkit.ops.names import packet_of
from nbkit.trace.executions.execution import Array, Execution, Result
from nbkit.trace.executions.features import PROJECTIONS, SYMMETRIC, Features, symmetric_of

Floats = npt.NDArray[np.float64]
# A tensor of so few different values says nothing about which one it is.
FEW_VALUES = 2
FEW_ELEMENTS = 2
# Numbers from here down, and so many times the median, stand for minus infinity in masks.
HUGE = 5_000.0
# Nobody knows what is in results of these without values: memory that is not written to, a workspace of a kernel.
UNWRITTEN = UNFILLED | {"mkldnn_rnn_layer"}


def _differ(known: Features) -> bool:
    """Returns whether elements are of more than two values; of recorded tensors whether they are not one."""
    return known.distinct > FEW_VALUES if known.distinct else known.min < known.max


def with_infinities(value: Array) -> Array:
    """Returns a mask or masked scores with minus Inf for what is huge, and huge beside the median of the others."""
    if value.dtype.kind != "f" or not value.size or not float(value.min()) <= -HUGE:
        return value
    huge = small = ones = 0
    flat = np.ascontiguousarray(value).reshape(-1)
    for start in range(0, len(flat), BLOCK):
        size = np.abs(flat[start : start + BLOCK])
        huge += int(np.count_nonzero((size >= HUGE) & (size < np.inf)))
        small += int(np.count_nonzero(size < HUGE))
        ones += int(np.count_nonzero(size <= 1))
    if not huge:
        return value
    # Where half of the scores are masked, the median of all is no longer that of the others.
    least = HUGE if ones > small // 2 else HUGE * max(1.0, _median(value, HUGE if small else np.inf))
    found = np.array(value, copy=True, order="C")
    flat = found.reshape(-1)
    for start in range(0, len(flat), BLOCK):
        block = flat[start : start + BLOCK]
        block[np.less_equal(block, -least)] = -np.inf
    return found


def _median(value: Array, below: float) -> float:
    """Returns the median of the sizes that are less than a number."""
    size = np.abs(value)
    return float(np.median(size[size < below].astype(np.float64)))


def values_of(left: "Side", right: "Side", first: int, second: int) -> tuple[Array | None, Array | None]:
    """Returns the values of a pair as they are compared: what is a mask on one side is one on the other."""
    is_mask = left.masks_out[first] or right.masks_out[second]
    return left.value(first, is_mask), right.value(second, is_mask)


def compared(left: "Side", right: "Side", match: Match, value: Array) -> Array:
    """Returns values that were computed for a pair as they are compared."""
    return with_infinities(value) if left.masks_out[match.left] or right.masks_out[match.right] else value


@dataclass(frozen=True)
class Side:
    """Holds an execution and what matching asks of its results, by result_id."""

    execution: Execution

    @cached_property
    def results(self) -> tuple[Result, ...]:
        return self.execution.results

    def __len__(self) -> int:
        return len(self.execution.results)

    @cached_property
    def does(self) -> list[str]:
        """Returns what each op does in the words of nbkit.ops.kinds; of others their kind."""
        return [op_kind(result.op) if result.kind == "op" else result.kind for result in self.results]

    @cached_property
    def is_passing(self) -> list[bool]:
        """Returns whether the result holds what its op reads: views, casts, copies."""
        return [does in PASSING and bool(result.sources) for does, result in zip(self.does, self.results, strict=True)]

    @cached_property
    def may_round(self) -> list[bool]:
        """Returns whether an op may give inexact numbers: none that moves or picks those that it reads."""
        return [
            result.kind == "op"
            and does not in EXACT
            and (does != "cast" or any(self.eps[source] < self.eps[number] for source in result.sources))
            for number, (does, result) in enumerate(zip(self.does, self.results, strict=True))
        ]

    @cached_property
    def is_blank(self) -> list[bool]:
        """Returns whether a result has nothing to compare: no element, or memory that nothing was written to yet."""
        found: list[bool] = []
        for number, result in enumerate(self.results):
            is_unwritten = result.kind == "op" and result.features is None and packet_of(result.op) in UNWRITTEN
            is_read = result.kind == "op" and result.features is None and bool(result.sources)
            is_view = is_read and found[result.sources[0]]
            found.append(not self.numel[number] or is_unwritten or is_view)
        return found

    def is_missing(self, number: int) -> bool:
        """Returns whether only statistics are known of a result, as its values were not kept; a trace has no others."""
        is_trace = self.execution.origin == "trace"
        return not is_trace and self.results[number].features is not None and self.execution.value(number) is None

    @cached_property
    def is_main(self) -> list[bool]:
        """Returns whether a result is an op's and was made, at any distance, from a parameter: no mask, no table."""
        found: list[bool] = []
        is_weight = [result.kind == "parameter" for result in self.results]
        for number, result in enumerate(self.results):
            reads_weight = any(is_weight[source] for source in result.sources)
            # A weight that is turned or cast is one still.
            is_weight[number] |= reads_weight and self.is_passing[number]
            found.append((reads_weight and not is_weight[number]) or any(found[source] for source in result.sources))
        return found

    @cached_property
    def leads_to_outputs(self) -> list[bool]:
        """Returns whether a result is an output, or made into one at any distance."""
        outputs = set(self.execution.outputs.values())
        found = [False] * len(self.results)
        for number in reversed(range(len(found))):
            found[number] = number in outputs or any(found[reader] for reader in self.execution.readers[number])
        return found

    @cached_property
    def numel(self) -> npt.NDArray[np.int64]:
        return np.array([prod(result.shape) for result in self.results], dtype=np.int64)

    @cached_property
    def has_features(self) -> npt.NDArray[np.bool_]:
        return np.array([result.features is not None for result in self.results], dtype=bool)

    @cached_property
    def projections(self) -> Floats:
        """Returns per result the features that see the order of elements; NaN where unknown."""
        unknown = (np.nan,) * PROJECTIONS
        rows = [(result.features.projections or unknown) if result.features else unknown for result in self.results]
        return np.array(rows, dtype=np.float64).reshape(len(self), PROJECTIONS)

    def symmetric(self, number: int) -> Floats:
        """Returns the features of a result that permuted axes do not change; NaN where unknown."""
        value, known = self.execution.value(number), self.results[number].features
        found = symmetric_of(value, known) if value is not None and known is not None else known and known.symmetric
        return np.array(found or (np.nan,) * SYMMETRIC)

    @cached_property
    def moments(self) -> Floats:
        """Returns rms, mean, mean_abs, min and max over rms, and the counts of NaN and Inf; NaN where unknown."""
        rows = []
        for result in self.results:
            known = result.features
            if known is None:
                rows.append((np.nan,) * 7)
                continue
            scale = known.rms or 1.0
            ratios = (known.mean / scale, known.mean_abs / scale, known.min / scale, known.max / scale)
            rows.append((known.rms, *ratios, known.nan_count, known.inf_count))
        return np.array(rows, dtype=np.float64).reshape(len(self), 7)

    @cached_property
    def is_telling(self) -> npt.NDArray[np.bool_]:
        """Returns whether equal values are proof: not of scalars, of zeros, of masks."""
        return np.array(
            [
                result.features is not None
                and result.features.numel > FEW_ELEMENTS
                and _differ(result.features)
                and result.dtype != "bool"
                for result in self.results
            ],
            dtype=bool,
        )

    @cached_property
    def clusters(self) -> list[list[int]]:
        """Returns groups of telling results with the same elements in the same order: views of one tensor, copies."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in np.flatnonzero(self.is_telling & ~np.isnan(self.projections[:, 0])).tolist():
            known = self.results[number].features
            assert known is not None
            size = int(self.numel[number])  # of complex elements, where features count two for each
            # Beside what is masked, the features of scores do not show the other elements.
            first = self.execution.values.first(number) if known.min <= -HUGE else None
            same = size, known.rms, known.nan_count, known.inf_count, known.projections, first
            groups.setdefault(same, []).append(number)
        return list(groups.values())

    @cached_property
    def masks_out(self) -> list[bool]:
        """Returns whether huge numbers of a result stand for minus Inf: all that it is made into ends in a softmax.

        Such are masks, what they are made of, and masked scores; of attention its mask, but not queries and keys.
        """
        found = [False] * len(self)
        for number in reversed(range(len(found))):
            readers = [one for one in self.execution.readers[number] if self.leads_to_outputs[one]]
            found[number] = bool(readers) and all(
                (self.does[one] in MASK_STEPS and found[one])
                or (self.does[one] in MASK_ENDS and number not in self._activations(one))
                for one in readers
            )
        return found

    def _activations(self, number: int) -> tuple[int, ...]:
        """Returns the queries, keys and values that attention reads."""
        return self.results[number].sources[:3] if self.does[number] == "attention" else ()

    def value(self, number: int, is_mask: bool | None = None) -> Array | None:
        """Returns the values of a result as they are compared: in masks what is out of all proportion is Inf.

        Added to scores, the smallest number of a dtype or -10,000 would drown every difference of the others.
        """
        value, known = self.execution.value(number), self.results[number].features
        is_mask = self.masks_out[number] if is_mask is None else is_mask
        if value is None or known is None or not is_mask or known.min > -HUGE:
            return value
        first = self.execution.values.first(number)
        if first not in self._values:
            self._values[first] = with_infinities(value)
        return self._values[first].reshape(value.shape)

    @cached_property
    def _values(self) -> dict[int, Array]:
        return {}

    @cached_property
    def errors(self) -> dict[tuple[int, int, tuple[int, ...], tuple[int, ...]], float | None]:
        """Returns the errors measured so far of pairs with one other side, by both results and the order of axes."""
        return {}

    @cached_property
    def eps(self) -> list[float]:
        """Returns the eps of each result's dtype; 0 of integers and bools."""
        known = {result.dtype: precision_of(result.dtype) for result in self.results}
        return [0.0 if (found := known[result.dtype]) is None else found.eps for result in self.results]

    @cached_property
    def coarsest(self) -> float:
        """Returns the largest eps that is the run's own: of its state, or of every fourth floating result of its ops.

        A few coarser results are a step in another dtype, whose rounding is a difference like any other.
        """
        of_ops = sorted(
            (eps for eps, result in zip(self.eps, self.results, strict=True) if result.kind == "op" and eps),
            reverse=True,
        )
        of_state = [
            eps
            for eps, result in zip(self.eps, self.results, strict=True)
            if result.kind in ("input", "parameter", "buffer")
        ]
        return max([*of_state, *of_ops[len(of_ops) // 4 : len(of_ops) // 4 + 1]], default=0.0)
