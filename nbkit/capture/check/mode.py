"""The dispatch mode below the recorder's: looks at what each op returns and writes, for the first that goes wrong."""

from collections.abc import Callable
from math import inf, isfinite
from time import perf_counter_ns
from typing import Any

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch._subclasses import FakeTensor

from nbkit.capture.check.memory import Memory
from nbkit.capture.check.origins import Finding, from_outside, is_float, origin_of, underflow_of
from nbkit.capture.check.values import largest, smallest_normal
from nbkit.capture.recording import Recording
from nbkit.capture.rerun.below_mode import BelowMode
from nbkit.capture.rerun.copies import all_tensors, tensors_in
from nbkit.capture.rerun.plans import UNINITIALISED, Plan, written_tensors
from nbkit.errors import NonFiniteError

# Each asks for one float64 run of the op: masks and zeros are common, lost precision is not.
MOST_RERUNS = 500
# A mean above it shows that not all of the values have underflowed.
LEAST_MEAN = {dtype: smallest_normal(dtype) for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16)}
# In-place ops that do not read what they write to.
OVERWRITING = frozenset(
    "copy_ fill_ zero_ normal_ uniform_ bernoulli_ random_ exponential_ geometric_ cauchy_ log_normal_ eye_".split()
)
MANY_RERUNS = "results of zeros not looked at for underflow: more than 500 in this recording"


class CheckMode(BelowMode):
    """Finds the ops that make a NaN, an Inf or nothing but underflow; what they return is passed on as it is."""

    def __init__(self, recording: Recording, stop: bool) -> None:
        super().__init__(recording)
        self.stop = stop
        self.findings: list[Finding] = []
        self.checked = self.inherited = self.reruns = 0
        self.memory = Memory()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        plan = self.plan(func)
        if plan.leave_out is not None:
            self.skipped[plan.leave_out] += 1
            out = func(*args, **kwargs)
            if plan.packet in UNINITIALISED and isinstance(out, Tensor):
                self.memory.note(out, True)  # nothing is there yet
            return out
        written = written_tensors(plan, args, kwargs) if plan.written or plan.written_names else []
        was_finite = True
        if written and plan.packet not in OVERWRITING and not plan.is_out:
            was_finite = all(self.memory.was_finite(one) for one in written)  # a question not asked yet says no
            was_finite = was_finite or self._counted(plan, lambda: self._look_before(written)) is not False
        out = func(*args, **kwargs)
        is_one = type(out) is Tensor and (not written or (was_finite and out is written[0] and len(written) == 1))
        if is_one and self._is_plainly_fine(out, is_whole=not written):
            return out
        found = self._counted(plan, lambda: self._look(plan, args, kwargs, out, written, was_finite))
        if found is not None and self.stop:
            raise NonFiniteError(f"{plan.name}: {found.message}")
        return out

    def _is_plainly_fine(self, out: Tensor, is_whole: bool) -> bool:
        """Whether a result is finite and far from underflow, by one sum: the usual case, at a tenth of the price."""
        started, grad = perf_counter_ns(), False
        try:
            least = LEAST_MEAN.get(out.dtype)
            if least is None or _len_torch_dispatch_stack() or out.is_meta or out.layout is not torch.strided:
                return False
            if not is_whole and self.memory.was_finite(out) is False:
                return False
            grad = torch.is_grad_enabled()
            if grad:
                torch._C._set_grad_enabled(False)
            with torch._C.DisableTorchFunction():
                # Finite values that are too large to add up are looked at closely, as are those that sum to nothing.
                if not least * out.numel() < abs(out.sum().item()) < inf:
                    return False
            self.checked += 1
            self.memory.note(out, True)
            return True
        except Exception:  # a tensor of functorch, say, whose values cannot be asked for
            return False
        finally:
            if grad:
                torch._C._set_grad_enabled(True)
            self.recording.spent.append((started, perf_counter_ns()))

    def _counted(self, plan: Plan, work: Callable[[], Any]) -> Any:
        """The result of `work`; trouble of ours is counted by op."""
        reason = f"could not be looked at: {plan.name}"
        return self.apart(work, lambda error: self.skipped.update([f"{reason} ({type(error).__name__})"]))

    def _look_before(self, written: list[Tensor]) -> bool:
        """Whether what is about to be written to was finite."""
        readable = [self._was_finite(one, place) for place, one in enumerate(written) if is_readable(one)]
        return all(readable)  # after all of them have been looked at

    def _was_finite(self, tensor: Tensor, position: int) -> bool:
        known = self.memory.was_finite(tensor)
        if known is not None:
            return known
        is_finite = isfinite(largest(tensor))
        self.memory.note(tensor, is_finite)
        if not is_finite:
            self._add(from_outside(tensor, position))
        return is_finite

    def _look(
        self, plan: Plan, args: Any, kwargs: Any, out: Any, written: list[Tensor], was_finite: bool
    ) -> Finding | None:
        made = [*tensors_in(out)]
        made += [one for one in written if not any(one is other for other in made)]
        result = None
        for position, tensor in enumerate(made):
            if not is_readable(tensor):
                continue
            self.checked += 1
            greatest = largest(tensor)
            if isfinite(greatest):
                self._remember_part(tensor, written)
                if greatest < smallest_normal(tensor.dtype) and not written and not plan.is_random:
                    found = self._underflow(plan, args, kwargs, tensor, position)
                    result = result or found
                continue
            found = origin_of(plan, args, kwargs, written, tensor, position) if was_finite else None
            if found is None:
                self.inherited += 1
                self._look_outside(args, kwargs)
            else:
                self._add(found)
                result = result or found
            self.memory.note(tensor, False)
        return result

    def _remember_part(self, tensor: Tensor, written: list[Tensor]) -> None:
        """What was written is finite; the storage is if all of it was written, or the rest was finite before."""
        is_whole = tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes() if written else True
        self.memory.note(tensor, is_whole or self.memory.was_finite(tensor) is not False)

    def _underflow(self, plan: Plan, args: Any, kwargs: Any, tensor: Tensor, position: int) -> Finding | None:
        if not any(is_readable(one) for one in all_tensors(args, kwargs)):
            return None  # made of numbers: zeros, full, arange
        self.reruns += 1
        if self.reruns > MOST_RERUNS:
            self.skipped[MANY_RERUNS] += 1
            return None
        found = underflow_of(plan, args, kwargs, tensor, position)
        return None if found is None else self._add(found)

    def _add(self, found: Finding) -> Finding:
        found.slot = len(self.recording.ops)
        self.findings.append(found)
        return found

    def _look_outside(self, args: Any, kwargs: Any) -> None:
        """Tell of inputs that are not finite and that no recorded op made, each storage once."""
        for position, tensor in enumerate(all_tensors(args, kwargs)):
            # One without dimensions is a number that somebody wrote, such as torch.tensor(-inf).
            is_given = is_readable(tensor) and tensor.dim() > 0 and self.memory.was_finite(tensor) is None
            if is_given and not isfinite(largest(tensor)):
                self._add(from_outside(tensor, position))
                self.memory.note(tensor, False)


def is_readable(tensor: Tensor) -> bool:
    """Whether a tensor has values that can fail to be finite."""
    return is_float(tensor) and tensor.numel() > 0 and not tensor.is_meta and not isinstance(tensor, FakeTensor)
