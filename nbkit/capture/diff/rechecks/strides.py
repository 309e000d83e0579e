"""Finds strides with which an op is wrong: kept calls run again on their device, inputs contiguous and as they were."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nbkit.capture.calls.call_of import op_of
from nbkit.capture.calls.encode import decoded, tensor_of
from nbkit.capture.diff.pair import flat
from nbkit.capture.raw.conj_neg import as_bare
from nbkit.capture.replay.op_traits import traits_of, written_tensors
from nbkit.capture.replay.reference import Results
from nbkit.numerics.precision import Array, precision_of
from nbkit.trace.captured_values import CapturedCall, CapturedResult

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
        result = captured[op_id].result(role, position)
        try:
            strides = None if result is None else _strides(captured[op_id], result, ratio, threshold)
        except Exception:  # the device has no memory left, say: nothing is known then
            continue
        if strides is not None:
            found[op_id] = strides
    return found


def _strides(call: CapturedCall, result: CapturedResult, ratio: float, threshold: float) -> Strides | None:
    """Returns the strides of one call, whose result had this noise ratio."""
    if traits_of(op_of(call.op)).is_random:
        return None
    inputs = [tensor_of(captured) for captured in call.tensors]
    strided = [number for number, tensor in enumerate(inputs) if not tensor.is_contiguous()]
    allowed = _allowed(result, ratio, threshold)
    if not strided or not _error(call, result, inputs, ()) > allowed:
        return None
    for chosen in [*([number] for number in strided), strided]:
        if _error(call, result, inputs, chosen) <= allowed:
            names = dict(_names(call))
            return {names[number]: list(inputs[number].stride()) for number in chosen}
    return None


def _allowed(result: CapturedResult, ratio: float, threshold: float) -> float:
    """Returns the largest error that is rounding: of what is no number, or has others, as the dtype rounds it."""
    error, precision = _distance(result.actual, result), precision_of(result.dtype)
    if np.isfinite(error) and np.isfinite(ratio):
        return threshold * error / ratio
    return 0.0 if precision is None else threshold * precision.eps * float(np.nanmax(np.abs(result.expected)))


def _error(call: CapturedCall, result: CapturedResult, inputs: list[Tensor], contiguous: Any) -> float:
    """Returns the largest error of a result where the call runs again with some inputs contiguous."""
    func = op_of(call.op)
    tensors = []
    for number, (tensor, captured) in enumerate(zip(inputs, call.tensors, strict=True)):
        stride = tensor.contiguous().stride() if number in contiguous else tensor.stride()
        empty = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=captured.device)
        tensors.append(empty.copy_(tensor))
    args, kwargs = (decoded(value, tensors) for value in (list(call.args), [*call.kwargs.values()]))
    named = dict(zip(call.kwargs, kwargs, strict=True))
    traits = traits_of(func)
    out = as_bare(func._op, args, named)
    return _distance(flat(Results(out, written_tensors(traits, args, named), traits.values).all[result.place]), result)


def _distance(values: Array, result: CapturedResult) -> float:
    """Returns how far values are from the reference at most; Inf where one of them alone is no number."""
    with np.errstate(invalid="ignore"):
        error = np.nan_to_num(np.abs(values - result.expected), nan=np.inf)
    is_same = (values == result.expected) | (np.isnan(values) & np.isnan(result.expected))
    return float(error.max(initial=0.0, where=~is_same))


def _names(call: CapturedCall) -> Iterator[tuple[int, str]]:
    """Yields what each tensor of a call is called in the op's schema, by its number."""
    arguments = [argument.name for argument in op_of(call.op)._schema.arguments]
    for name, value in [*zip(arguments, call.args, strict=False), *call.kwargs.items()]:
        for place, one in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(one, dict) and "tensor" in one:
                yield one["tensor"], f"{name}[{place}]" if isinstance(value, list) else name
