"""Runs one call on another device or in other dtypes, with the effects that it has in the step."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.grad_mode import _unsafe_preserve_version_counter as keeping_version

from nbkit.capture.diff.result_dtypes import ResultDtypes
from nbkit.capture.operators.copies import AliasError, CallCopies, is_plain
from nbkit.capture.operators.intercept import Intercepted
from nbkit.capture.raw.conj_neg import as_bare
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.devices import home_of
from nbkit.capture.replay.op_traits import bound, draws
from nbkit.capture.replay.substitutes import SUBSTITUTES
from nbkit.errors import first_line

CPU = torch.device("cpu")
HALVES = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
BelowAutograd = torch._C._AutoDispatchBelowAutograd
OTHER_GENERATORS = frozenset({"cuda", "mps", "xpu", "npu", "hpu", "mlu", "musa"})


class NotRunError(Exception):
    """Says why a call cannot run elsewhere; nothing has been changed, and it can run where it is."""


class Elsewhere:
    """Runs calls on `device` (null for their own) with the dtypes of `dtypes` exchanged; results come back as bare."""

    def __init__(self, device: torch.device | None, dtypes: dict[torch.dtype, torch.dtype]) -> None:
        self.device, self.dtypes = device, dtypes
        self.result_dtypes = ResultDtypes()

    def refuses(self, call: Intercepted) -> str | None:
        """Returns why a call is better left alone."""
        if not all(map(is_plain, call.tensors())):
            return "tensor subclasses"
        if self.device is None or not call.traits.is_random or not draws(call.traits, call.args, call.kwargs):
            return None
        home = home_of(call.args, call.kwargs)
        if home.type in OTHER_GENERATORS and home != self.device:
            return "random ops: another device draws other numbers"
        return None

    def run(self, call: Intercepted) -> tuple[Any, str | None]:
        """Returns what the step gets, and what a reader should know; runs isolated. Raises NotRunError."""
        try:
            return self._run(call, self.dtypes), None
        except AliasError:
            raise NotRunError("views") from None
        except Exception as error:
            return self._wider(call, error)

    def _wider(self, call: Intercepted, first: Exception) -> tuple[Any, str]:
        """The same with half types in float32, for kernels that the CPU does not have."""
        halves = {kind: wide for kind, wide in HALVES.items() if self.dtypes.get(kind, kind) in HALVES}
        if any(tensor.dtype in halves for tensor in call.tensors()):
            try:
                return self._run(call, {**self.dtypes, **halves}), f"in float32: {first_line(first)}"
            except Exception as error:
                first = error
        raise NotRunError(first_line(first)) from first

    def _run(self, call: Intercepted, dtypes: dict[torch.dtype, torch.dtype]) -> Any:
        traits = call.traits
        wanted = self._wanted(call, dtypes)
        copies = CallCopies(traits, call.args, call.kwargs, self.device, dtypes)
        try:
            out = _ran(call, copies)
        except NotImplementedError:
            formula = SUBSTITUTES.get(traits.packet)
            # A formula has several steps, and each would round to a half type.
            if formula is None or any(tensor.dtype in HALVES for tensor in all_tensors(copies.args, copies.kwargs)):
                raise
            arguments = bound(traits.func, copies.args, copies.kwargs)
            if arguments.get("dropout_p"):  # which of the numbers were dropped only the device knows
                raise
            out = _in_results_of(call, formula(arguments))
        home = home_of(call.args, call.kwargs)
        result = copies.results(out, home, wanted)
        copies.write_back()
        return result

    def _wanted(self, call: Intercepted, dtypes: dict[torch.dtype, torch.dtype]) -> Any:
        """What says which dtype a result must have, by number and by what it came out as."""
        if not dtypes:
            return lambda number, tensor: tensor.dtype
        known = self.result_dtypes.of(call.traits, call.args, call.kwargs)
        if known is not None:
            return lambda number, tensor: known[number]
        changed = [tensor.dtype for tensor in call.tensors() if tensor.dtype in dtypes]
        result = _promoted([tensor.dtype for tensor in call.tensors() if tensor.dtype.is_floating_point] or changed)

        def back(number: int, tensor: Tensor) -> torch.dtype:
            is_changed = changed and tensor.dtype in {dtypes[kind] for kind in changed}
            return result if is_changed and result is not None else tensor.dtype

        return back


def _ran(call: Intercepted, copies: CallCopies) -> Any:
    """Returns what the op returns for the copies; also what it notes for its backward op, if one is to follow."""
    run = call.traits.func._op
    with torch.set_grad_enabled(call.has_gradients):
        if call.traits.values is None:
            return as_bare(run, copies.args, copies.kwargs)
        copies.want_gradients()
        with BelowAutograd():
            return as_bare(run, copies.args, copies.kwargs)


def _in_results_of(call: Intercepted, values: Any) -> Any:
    """Returns what the op returns, with these values in place of its own.

    What it notes for its backward op only a kernel on the device can read: an op that has such notes runs there, too.
    """
    if call.traits.values is None:
        return values
    results = call.run()
    for result, value in zip(results, values, strict=False):
        with keeping_version(result):
            result.copy_(value)
    return results


def _promoted(dtypes: list[torch.dtype]) -> torch.dtype | None:
    result: torch.dtype | None = None
    for dtype in dtypes:
        result = dtype if result is None else torch.promote_types(result, dtype)
    return result
