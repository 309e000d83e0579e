"""Finds strides with which an op is wrong: kept calls run again on their device, inputs contiguous and as they were."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nbkit.capture.calls.call_of import OpCall, OpResult, of_captured
from nbkit.capture.diff.pair import flat
from nbkit.capture.raw.conj_neg import as_bare
from nbkit.capture.replay.copies import all_tensors, mapped_call, tensors_in
from nbkit.capture.replay.op_traits import bound, traits_of
from nbkit.numerics.precision import precision_of
from nbkit.trace.captured_values import CapturedCall

Strides = dict[str, list[int]]


def strides_at_fault(captured: Mapping[int, CapturedCall], diffs: pd.DataFrame, threshold: float) -> dict[int, Strides]:
    """Returns by op_id the strides with which a kept call is wrong, by the name of its argument.

    With contiguous copies of these inputs alone it is right. A call that is right this time, or wrong with contiguous
    copies of all inputs too, has none, nor has one that cannot run again.
    """
    found = {}
    wrong = diffs[(diffs["status"] == "mismatch") & diffs["op_id"].isin(list(captured))]
    worst = wrong.sort_values("noise_ratio").drop_duplicates("op_id", keep="last")
    columns = (worst[name].tolist() for name in ("op_id", "role", "position", "noise_ratio"))
    for op_id, role, position, ratio in zip(*columns, strict=True):
        try:
            call = of_captured(captured[op_id])
            result = next(one for one in call.results if (one.role, one.position) == (role, position))
            strides = {} if traits_of(call.op).is_random else _strides(call, result, ratio, threshold)
        except Exception:  # the device has no memory left, say: nothing is known then
            continue
        if strides:
            found[op_id] = strides
    return found


def _strides(call: OpCall, result: OpResult, ratio: float, threshold: float) -> Strides:
    """Returns the strides of one call, whose result had this noise ratio: that tells which error is rounding.

    Of a result that is no number, or has others, it is what the dtype rounds.
    """
    assert result.expected is not None
    error, precision = _distance(result.actual, result.expected), precision_of(str(result.actual.dtype)[6:])
    allowed = threshold * error / ratio
    if not np.isfinite(error / ratio) or not np.isfinite(ratio):
        largest = float(np.nanmax(np.abs(flat(result.expected))))
        allowed = 0.0 if precision is None else threshold * precision.eps * largest
    named = [(name, one) for name, value in bound(call.op, call.args, call.kwargs).items() for one in tensors_in(value)]
    strided = [(name, one) for name, one in named if not one.is_contiguous()]
    if not strided or not _error(call, result, []) > allowed:
        return {}
    for chosen in [*([one] for one in strided), strided]:
        if _error(call, result, [id(one) for _, one in chosen]) <= allowed:
            return {name: list(one.stride()) for name, one in chosen}
    return {}


def _error(call: OpCall, result: OpResult, contiguous: Collection[int]) -> float:
    """Returns the largest error of a result where the call runs again with some inputs, by their id, contiguous."""

    def placed(value: object) -> object:
        if not isinstance(value, Tensor):
            return value
        stride = value.contiguous().stride() if id(value) in contiguous else value.stride()
        return torch.empty_strided(value.shape, stride, dtype=value.dtype, device=call.device).copy_(value)

    args, kwargs = mapped_call(call.args, call.kwargs, placed, {})
    out = as_bare(call.op._op, args, kwargs)
    found = [*tensors_in(out)] if result.role == "output" else all_tensors(args, kwargs)
    assert result.expected is not None
    return _distance(found[result.position], result.expected)


def _distance(found: Tensor, wanted: Tensor) -> float:
    """Returns how far values are from the reference at most; Inf where one of them alone is no number."""
    values, expected = flat(found), flat(wanted)
    with np.errstate(invalid="ignore"):
        error = np.nan_to_num(np.abs(values - expected), nan=np.inf)
    is_same = (values == expected) | (np.isnan(values) & np.isnan(expected))
    return float(error.max(initial=0.0, where=~is_same))
