"""The verdict on compared tensors: measured together while small, one by one where rounding is exceeded."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.calls.capturer import CallCapturer, Values
from nbkit.capture.diff.measuring import NOISE, RELATIVE, Meter, Numbers
from nbkit.capture.diff.pair import Pair, Row, allowance_of, flat, pieces_of
from nbkit.capture.diff.patterns.calls import other_eps, other_values, rounded_inputs
from nbkit.capture.diff.patterns.candidate import LARGEST, Found, Wrong
from nbkit.capture.diff.patterns.earlier import name_pattern
from nbkit.capture.diff.patterns.places import place_patterns, reordered
from nbkit.capture.diff.patterns.regions import region_pattern
from nbkit.capture.diff.patterns.values import constant, limited_values, linear, rounded_result
from nbkit.capture.diff.rechecks.conditioning import recheck
from nbkit.capture.diff.rechecks.each_element import is_well_determined, recheck_each
from nbkit.capture.diff.rechecks.reduced import narrow, reduced, running
from nbkit.capture.diff.rechecks.scalars import with_rounded_scalars
from nbkit.capture.diff.rechecks.ties import ties
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.capture.replay.reference import Call, Results
from nbkit.errors import first_line
from nbkit.numerics.metrics import CHUNK, Metrics, measure, measure_one
from nbkit.numerics.noise_ratio import outside, where_not_finite
from nbkit.numerics.precision import DTYPES, Array, Precision, precision_of
from nbkit.numerics.tolerances import Tolerances
from nbkit.schema.message import Message, element, joined
from nbkit.step.decode import sizes_of

# So many elements of small tensors wait to be measured together: one call of numpy costs what a thousand elements do.
WAITING = 1 << 16
DTYPE_NAMES = {getattr(torch, name): name for name in DTYPES if hasattr(torch, name)}


class Judge:
    """Takes compared tensors, keeps one row for each; rows stand in call order once finish() has been called."""

    def __init__(self, tolerances: Tolerances, threshold: float, capturer: CallCapturer) -> None:
        self.tolerances, self.threshold, self.capturer = tolerances, threshold, capturer
        self.meter = Meter()
        self.rows: list[Row] = []
        self.waiting: list[Pair] = []
        self.waiting_elements = 0

    def add_row(
        self, slot: int, traits: OpTraits, role: str, position: int, actual: Tensor | None, **columns: Any
    ) -> Row:
        """A row of this slot of Recording.ops, with what is known without comparing."""
        row: Row = {"slot": slot, "op": traits.name, "role": role, "position": position, **columns}
        if actual is not None:
            row["dtype"] = DTYPE_NAMES.get(actual.dtype) or str(actual.dtype).removeprefix("torch.")
            row["shape"] = shape_text(actual.shape)
        self.rows.append(row)
        return row

    def compare(
        self, row: Row, actual: Tensor, call: Call, results: Results, index: int, arguments: tuple[Any, Any]
    ) -> None:
        """Judge one tensor; a small one may wait for others. What raises is a row: others are there all the same."""
        try:
            expected, precision = results.all[index], precision_of(row["dtype"])
            row["message"] = call.note
            difference = _other_form(actual, expected, call, index)
            measured = None if difference else self.meter.measure(actual, expected, precision)
            numbers, piece_noise = measured or (None, None)
            if self._settle(row, call, numbers, precision, (index, results)):
                return
            call.origin = call.origin or self.capturer.origin(*arguments)
            if difference:
                row |= difference
                self.capturer.offer(row, call, Values(index, flat(actual), flat(expected), tuple(expected.shape)))
            else:
                pair = Pair(row, actual, flat(expected, copy=False), precision, call, results, index, piece_noise)
                self._compare(pair, numbers)
        except Exception as error:
            row |= failed(error)

    def _compare(self, pair: Pair, numbers: Numbers | None) -> None:
        """Judge a pair that is in doubt, or keep it until others can be measured with it."""
        tensor = pair.source
        if numbers is not None:
            self._finish([pair], [numbers])
        elif tensor.numel() > CHUNK or not tensor.numel():
            self._finish([pair], _rows(measure_one(pieces_of(tensor), pair.expected, pair.precision)))
        else:
            # Copies, and the inputs wait too, for a re-check.
            self.waiting.append(pair._replace(source=flat(tensor), expected=pair.expected.copy()))
            self.waiting_elements += 2 * len(pair.expected) + sum(tensor.numel() for tensor in pair.call.tensors())
            if self.waiting_elements > WAITING:
                self.finish()

    def settle_in_pieces(self, row: Row, actual: Tensor, call: Call) -> bool:
        """Whether a call that is done in pieces is right beyond doubt; its row is filled then."""
        precision = precision_of(row["dtype"])
        if precision is None or self.tolerances.of(call.traits.name, row["dtype"]) is not None:
            return False
        if _has_other_dtype(actual, call, 0):
            return False
        return self._settle(row, call, self.meter.measure_in_pieces(actual, call.pieces(), precision), precision, None)

    def _settle(
        self,
        row: Row,
        call: Call,
        numbers: Numbers | None,
        precision: Precision | None,
        result: tuple[int, Results] | None,
    ) -> bool:
        """Fill the row of a measured tensor that is right beyond doubt; False, with nothing done, if it is not."""
        if numbers is None or precision is None or self.tolerances.of(call.traits.name, row["dtype"]) is not None:
            return False
        noise = numbers[NOISE]
        if result is not None:
            index, results = result
            noise /= allowance_of(call, precision, (index, len(results.all)), int(numbers[0])).rounding
        if noise > self.threshold or self._is_off_somewhere(call, numbers, precision):
            return False
        right = {"status": "ok", "op": row["op"], "metrics": numbers, "noise_ratio": noise}
        if self.capturer.wants(right):
            return False
        row |= right
        row["mismatch_count"], row["mismatch_fraction"] = 0, 0.0
        return True

    def _is_off_somewhere(self, call: Call, numbers: Numbers, precision: Precision) -> bool:
        """Whether some element is off by more than its own rounding, in an op where each can be judged by that."""
        relative = numbers[RELATIVE]
        return not relative <= self.threshold * precision.eps and is_well_determined(call.traits)

    def finish(self) -> None:
        """Judge all that waits."""
        waiting, self.waiting, self.waiting_elements = self.waiting, [], 0
        groups: dict[tuple[Any, Any], list[Pair]] = {}
        for pair in waiting:
            groups.setdefault((pair.precision, pair.expected.dtype), []).append(pair)
        for (precision, _), pairs in groups.items():
            try:
                starts = np.cumsum([0, *(len(pair.expected) for pair in pairs[:-1])])
                actual, expected = (np.concatenate([pair[side] for pair in pairs]) for side in (1, 2))
                self._finish(pairs, _rows(measure(actual, expected, starts, precision)))
            except Exception as error:  # out of memory, say
                for pair in pairs:
                    pair.row.update(failed(error))

    def _finish(self, pairs: Sequence[Pair], measured: Iterable[Numbers]) -> None:
        for pair, numbers in zip(pairs, measured, strict=True):
            pair.row["metrics"], pair.row["noise_ratio"] = numbers, numbers[NOISE]
            try:
                self._judge(pair)
            except Exception as error:  # of the reference, run once more
                pair.row.update(failed(error))

    def _judge(self, pair: Pair) -> None:
        row = pair.row
        tolerance = self.tolerances.of(pair.call.traits.name, row["dtype"])
        wrong: Array | None = None
        if tolerance is not None:
            row["atol"], row["rtol"] = tolerance
            wrong = outside(pair.actual, pair.expected, pair.precision, tolerance)
        elif pair.precision is None:
            wrong = self._wrong_integers(pair) if row["noise_ratio"] else None
        else:
            row["noise_ratio"] /= pair.allowed.rounding
            if row["noise_ratio"] > self.threshold:
                row["noise_ratio"], wrong = recheck(pair, pair.precision, self.threshold)
            if (wrong is None or not wrong.any()) and self._is_off_somewhere(pair.call, row["metrics"], pair.precision):
                ratio, wrong = recheck_each(pair, pair.precision, self.threshold)
                row["noise_ratio"] = row["noise_ratio"] if wrong is None else ratio
        count = 0 if wrong is None else int(wrong.sum())
        row["mismatch_count"] = count
        row["mismatch_fraction"] = count / max(len(pair.expected), 1)
        row["status"] = "mismatch" if count else "ok"
        if count:
            assert wrong is not None
            row["message"] = _message(pair, row, wrong)
            if tolerance is None and pair.precision is not None:
                self._explain(pair, pair.precision)
            if row["status"] == "mismatch":
                _name(pair, wrong)
        self._keep(pair)

    def _keep(self, pair: Pair) -> None:
        if self.capturer.wants(pair.row):
            shape = tuple(pair.results.all[pair.position].shape)
            self.capturer.offer(pair.row, pair.call, Values(pair.position, pair.actual, pair.expected, shape))

    def _explain(self, pair: Pair, precision: Precision) -> None:
        """Say whether inputs, or sums, of fewer bits explain a wrong result."""
        sides = pair.actual, pair.expected
        explanation = reduced(pair.call, pair.position, sides, precision, pair.allowed, self.threshold)
        if explanation is None or not explanation.wholly:
            explanation = narrow(pair) or running(pair, precision, self.threshold) or explanation
        if explanation is not None:
            pair.row["message"] = joined("; ", [explanation.message, pair.row["message"]])
            pair.row["status"] = "reduced" if explanation.wholly else "mismatch"
            if explanation.wholly and explanation.format is not None:
                pair.row["pattern"] = "rounded_inputs"
                pair.row["pattern_evidence"] = json.dumps({"format": explanation.format})

    def _wrong_integers(self, pair: Pair) -> Array:
        """Which elements differ, other indices of equal values and other sides of rounded bounds left out."""
        actual = pair.actual
        wrong: Array = actual != pair.expected
        for rounded in with_rounded_scalars(pair.call, pair.position, pair.call.dtypes):
            wrong &= actual != flat(rounded)
        if not wrong.any():
            pair.row.update({"noise_ratio": 0.0, "message": "as with its numbers rounded to the dtypes of its tensors"})
            return wrong
        shape = pair.results.all[pair.position].shape
        same = ties(pair.call, *(torch.from_numpy(side).reshape(shape) for side in (actual, pair.expected)))
        if same is not None:
            wrong &= ~same.numpy()
            if not wrong.any():
                pair.row.update({"noise_ratio": 0.0, "message": "other indices of equal values"})
        return wrong


@lru_cache(maxsize=4096)
def shape_text(shape: torch.Size) -> str:
    """A shape as the column of that name has it."""
    return json.dumps(list(shape))


def failed(error: Exception) -> Row:
    """The verdict on what raised while it was compared."""
    return {"status": "failed", "message": could_not(error)}


def could_not(error: Exception) -> str:
    """An error in the words of a row."""
    return f"could not be compared ({type(error).__name__}: {first_line(error)})"


def _rows(metrics: Metrics) -> Iterator[Numbers]:
    """The numbers of each pair."""
    return map(list, zip(*(column.tolist() for column in metrics), strict=True))


def _other_form(actual: Tensor, expected: Tensor, call: Call, index: int) -> Row | None:
    """What is wrong with a shape or a dtype; the reference's own is wider, but of the same kind."""
    if actual.shape != expected.shape:
        return {"status": "shape", "message": f"shape {list(actual.shape)}, expected {list(expected.shape)}"}
    same_kind = (actual.is_floating_point() and expected.is_floating_point()) or (
        actual.is_complex() and expected.is_complex()
    )
    if same_kind and _has_other_dtype(actual, call, index):
        wanted = call.result_dtypes[index]  # type: ignore[index]  # known, as it differs
    elif actual.dtype == expected.dtype or (same_kind and call.reference.function is None):
        return None
    else:
        wanted = expected.dtype
    return {"status": "dtype", "message": f"dtype {actual.dtype}, expected {wanted}".replace("torch.", "")}


def _has_other_dtype(actual: Tensor, call: Call, index: int) -> bool:
    """Whether a result is known to need another dtype."""
    dtypes = call.result_dtypes
    return dtypes is not None and index < len(dtypes) and actual.dtype != dtypes[index]


def _name(pair: Pair, wrong: Array) -> None:
    """Say what a wrong result looks like, where a simple pattern explains it."""
    try:
        found = described(pair, wrong)
    except Exception:  # of the reference, or out of memory: the verdict stands without
        return
    if found is not None:
        name_pattern(pair.row, *found)


def _message(pair: Pair, row: Row, wrong: Array) -> str:
    """What NaN and Inf say, and the worst element with its index."""
    actual = pair.actual
    with np.errstate(all="ignore"):
        error = np.abs(actual.astype(complex) - pair.expected.astype(complex))
    error = np.where(wrong, np.where(np.isnan(error), np.inf, error), -1.0)
    worst = int(error.argmax())
    index = [int(number) for number in np.unravel_index(worst, sizes_of(row["shape"]))]
    values = [element(f"{side[worst]:.9g}") for side in (actual, pair.expected)]
    worst_element = Message(f"worst at {index}: ", values[0], ", expected ", values[1])
    actual_nan, expected_nan, actual_inf, expected_inf = (int(count) for count in row["metrics"][1:5])
    counts = actual_nan, expected_nan, actual_inf, expected_inf
    parts = [pair.call.note, where_not_finite(counts), worst_element]
    return joined("; ", filter(None, parts))


def described(pair: Pair, wrong: Array) -> Found | None:
    """What a result that was judged wrong looks like; None where no simple pattern explains it."""
    if pair.actual.dtype != pair.expected.dtype or not len(pair.expected):
        return None
    with np.errstate(all="ignore"):
        return next(filter(None, _patterns(Wrong(pair, wrong))), None)


def _patterns(wrong: Wrong) -> Iterator[Found | None]:
    yield from constant(wrong)
    if len(wrong.actual) > LARGEST:
        yield from linear(wrong)
        return
    # Before a factor or an offset: that of an op which did nothing is no news.
    yield from other_values(wrong)
    yield from linear(wrong)
    yield from other_eps(wrong)
    yield from place_patterns(wrong)
    yield from limited_values(wrong)
    yield region_pattern(wrong)
    yield from reordered(wrong)
    yield from rounded_result(wrong)
    yield from rounded_inputs(wrong)
