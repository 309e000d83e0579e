"""Judges the results of replayed calls: to the bit, or by what rounding allows, as opdiff does."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.calls.capturer import CallCapturer
from nbkit.capture.diff.judge import Judge, could_not
from nbkit.capture.diff.measuring import NOISE
from nbkit.capture.diff.pair import Row, flat, pieces_of, rounds_once
from nbkit.capture.operators.replay.compare import results
from nbkit.capture.operators.replay.run import CallRunner, Ran, Result, raised_text
from nbkit.capture.replay.op_traits import draws
from nbkit.capture.replay.reference import Call, NoKernelError, Reference, Results
from nbkit.errors import TraceError
from nbkit.numerics.metrics import Metrics, measure_one
from nbkit.numerics.precision import precision_of
from nbkit.numerics.tolerances import Tolerances

BITS, CAPTURED = "bits", "captured"
# What another device or version may lay out otherwise.
OF_LAYOUT = ("strides", "storage", "conj", "neg", "memory", "the")


class Verdicts:
    """Keeps a row of `diffs` per compared result; `against` as in opreplay. Raises OptionError."""

    def __init__(
        self, against: Any, runner: CallRunner, tolerances: Mapping[Any, tuple[float, float]] | None, threshold: float
    ) -> None:
        self.against, self.runner = against, runner
        self.reference = Reference("cpu" if against in (BITS, CAPTURED) else against)
        self.judge = Judge(Tolerances(tolerances), threshold, CallCapturer(keep=0))

    @property
    def rows(self) -> list[Row]:
        return self.judge.rows

    def add(self, ran: Ran, op_id: int) -> bool:
        """Adds the rows of a call; returns whether it did to the bit what it did in the step. Raises TraceError."""
        before = ran.built.record.get("raised")
        if ran.raised is not None or before is not None:
            return self._raised(ran, op_id, before)
        compared = results(ran)
        is_same = all(result.difference is None for result in compared)
        if not compared:
            self._row(ran, op_id, Result("output", 0, None, None, None, note="it returns nothing"), "ok")
        elif self.against == BITS:
            for result in compared:
                self._to_the_bit(ran, op_id, result)
        else:
            self._by_rounding(ran, op_id, compared)
        return is_same

    def finish(self) -> None:
        """Judges what waits to be measured together."""
        self.judge.finish()

    def _raised(self, ran: Ran, slot: int, before: Any) -> bool:
        now = None if ran.raised is None else raised_text(ran.raised)
        is_same = now is not None and before is not None and now.partition(":")[0] == str(before).partition(":")[0]
        if is_same:
            message = f"it raises as in the step: {now}"
        elif now is None:
            message = f"it returns, and in the step it raised {before}"
        else:
            message = f"it raised {now}"
        result = Result("output", 0, None, None, None, note=message)
        self._row(ran, slot, result, "ok" if is_same else "failed")
        return is_same

    def _row(self, ran: Ran, slot: int, result: Result, status: str) -> Row:
        actual = result.actual if isinstance(result.actual, Tensor) else None
        message = "; ".join(filter(None, (result.difference, result.note))) or None
        place = slot, ran.traits, result.role, result.position
        return self.judge.add_row(*place, actual, status=status, message=message)

    def _to_the_bit(self, ran: Ran, slot: int, result: Result) -> None:
        if result.difference is None:
            row = self._row(ran, slot, result, "ok")
            if isinstance(result.actual, Tensor) and result.expected is not None:
                row |= {"metrics": _exact(result.actual), "noise_ratio": 0.0}
                row |= {"mismatch_count": 0, "mismatch_fraction": 0.0}
            return
        row = self._row(ran, slot, result, _status(result.difference))
        if result.has_other_bits and result.expected is not None:
            row |= _measured(result.actual, result.expected, row["dtype"])

    def _by_rounding(self, ran: Ran, slot: int, compared: list[Result]) -> None:
        """Judges the results by the reference, or by the captured ones with the op's conditioning."""
        wrong = [result for result in compared if _has_other_form(result)]
        settled = [result for result in compared if not _has_other_form(result) and not _has_values(result)]
        for result in (*wrong, *settled):
            self._row(ran, slot, result, _status(result.difference) if _has_other_form(result) else "ok")
        judged = [result for result in compared if result not in wrong and result not in settled]
        if not judged:
            return
        if self.against != CAPTURED and ran.traits.is_random and draws(ran.traits, ran.built.args, ran.built.kwargs):
            for result in judged:
                note = "a reference draws other random numbers; against='bits' compares them"
                self._row(ran, slot, result._replace(difference=None, note=note), "skipped")
            return
        call, expected = self._expected(ran, compared)
        actual = Results.of(ran.traits, ran.out, ran.built.args, ran.built.kwargs)
        call.dtype, call.rounds_once = actual.all[0].dtype, rounds_once(actual.all[0])
        for result in judged:
            index = next(number for number, tensor in enumerate(actual.all) if tensor is result.actual)
            row = self._row(ran, slot, result._replace(difference=None), "ok")
            if isinstance(expected, str):
                row |= {"status": "skipped", "message": expected}
            elif index < len(expected.all):
                arguments = ran.built.args, ran.built.kwargs
                self.judge.compare(row, result.actual, call, expected, index, arguments)

    def _expected(self, ran: Ran, compared: list[Result]) -> tuple[Call, Results | str]:
        again = self.runner.build(ran.built.record)
        call = self.reference.copy(ran.traits, again.args, again.kwargs)
        if self.against == CAPTURED:
            tensors = [result for result in compared if isinstance(result.actual, Tensor)]
            known = [(one.role, one.actual if one.expected is None else one.expected) for one in tensors]
            expected = Results([value for role, value in known if role == "output"], [], ran.traits.values)
            expected.written = [value for role, value in known if role == "input"]
            return call, expected
        try:
            return call, call.results((again.args, again.kwargs))
        except NoKernelError as error:
            return call, f"the reference has no kernel for it ({error})"
        except Exception as error:
            return call, could_not(error)


def _has_other_form(result: Result) -> bool:
    difference = result.difference
    return difference is not None and not result.has_other_bits and difference.split()[0] not in OF_LAYOUT


def _has_values(result: Result) -> bool:
    return isinstance(result.actual, Tensor) and result.note is None and result.actual.numel() > 0


def _status(difference: str | None) -> str:
    kind = (difference or "").split(" ")[0]
    return kind if kind in ("shape", "dtype") else "mismatch"


def _exact(tensor: Tensor) -> list[float]:
    """Returns the metrics of a tensor and itself."""
    numbers = dict.fromkeys(Metrics._fields, 0.0) | {"numel": float(tensor.numel())}
    if tensor.numel():
        numbers |= dict.fromkeys(("inner", "actual_square", "expected_square"), 1.0)
    if (tensor.is_floating_point() or tensor.is_complex()) and tensor.layout is torch.strided and tensor.numel():
        try:
            for name, count in (("nan", tensor.isnan().sum()), ("inf", tensor.isinf().sum())):
                numbers |= dict.fromkeys((f"actual_{name}_count", f"expected_{name}_count"), float(count))
        except RuntimeError:  # a dtype without these, such as float8
            pass
    return list(numbers.values())


def _measured(actual: Tensor, expected: Tensor, dtype: str) -> Row:
    """Returns how far values with other bits are from the captured ones."""
    try:
        left, right = flat(actual), flat(expected)
        numbers = measure_one(pieces_of(actual), right, precision_of(dtype))
        metrics = [float(column[0]) for column in numbers]
        count = int(np.count_nonzero(~((left == right) | ((left != left) & (right != right)))))
    except Exception as error:
        return {"message": could_not(error)}
    # Other bits of equal numbers, such as those of -0 or of a NaN, are one element at least.
    count = max(count, 1)
    share = count / max(len(right), 1)
    return {"metrics": metrics, "noise_ratio": metrics[NOISE], "mismatch_count": count, "mismatch_fraction": share}


def unusable(error: TraceError) -> str:
    """Returns the reason in `meta["skipped"]` of a call that cannot be run again."""
    return f"not run again: {error}"
