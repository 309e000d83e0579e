"""Checks what each op returns and writes, and reports the first op that goes wrong.

Where torch's observer reports the ops, the library settles the usual case by itself
(nbkit/capture/native/src/checker.h) and asks here about others.
"""

from collections import Counter
from collections.abc import Callable
from math import inf, isfinite
from time import perf_counter_ns
from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction, _len_torch_dispatch_stack

from nbkit.capture.check.hidden import Held
from nbkit.capture.check.masks import MOVING, is_given
from nbkit.capture.check.origins import (
    BadTensor,
    from_outside,
    given_nan,
    may_wrap,
    origin_of,
    saturated_of,
    underflow_of,
    unwritten,
    visible_results,
    wrapped_of,
)
from nbkit.capture.check.values import infinities, is_float, is_readable, largest, smallest_normal
from nbkit.capture.raw.native_registry import NativeRegistry
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.shards import dtensor_type, has_dtensor, has_dtensor_type, is_shape_question
from nbkit.capture.raw.step_mode import StepMode
from nbkit.capture.raw.tensor_registry import TensorRegistry
from nbkit.capture.replay.copies import all_tensors, tensors_in
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.capture.replay.op_traits import OpTraits, traits_of, written_tensors
from nbkit.errors import NonFiniteError
from nbkit.ops.families import CASTS, OVERWRITING, UNFILLED
from nbkit.schema.message import Message

Run = Callable[..., Any]
# Each asks for one float64 run of the op: masks and zeros are common, lost precision is not.
MOST_RERUNS = 500
# A mean above it shows that not all of the values have underflowed.
LEAST_MEAN = {dtype: smallest_normal(dtype) for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16)}
VALUELESS = "tensors without values (meta, fake)"
MANY_RERUNS = "results of zeros not looked at for underflow: more than 500 in this recording"


class Checker:
    """Finds the ops that make a NaN, an Inf or nothing but underflow; passes on what they return as it is."""

    def __init__(self, recording: Recording, stop: bool) -> None:
        self.recording, self.stop = recording, stop
        self.bad: list[BadTensor] = []
        self.held: list[Held] = []
        self.checked = self.propagated = self.reruns = 0
        self.error: NonFiniteError | None = None
        self.skipped: Counter[str] = Counter()
        self.memory: Any = Memory(recording.registry)
        self.local_ops = LocalOps(self._around)
        self.native: Any = None
        if recording.native is not None and isinstance(recording.registry, NativeRegistry):
            self.memory = recording.native.Memory(recording.registry.tensors)
            self.native = recording.native.Checker(self.memory, self)

    def around(self, func: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that runs an op by `run` and checks its result, of one on DTensors what it is made of."""
        return self.local_ops.taking_apart(run, self._around(func, run))

    def _around(self, func: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        traits = traits_of(func)
        if traits.leave_out is not None:
            return self._around_left_out(traits, traits.leave_out, run)
        if traits.written or traits.written_names:
            return self._around_writing(traits, run)

        def run_and_look(*args: Any, **kwargs: Any) -> Any:
            out = run(*args, **kwargs)
            if type(out) is not Tensor or not self._is_plainly_fine(out, is_whole=True):
                self._settle(traits, args, kwargs, out, [], True)
            return out

        return run_and_look

    def _around_left_out(self, traits: OpTraits, reason: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_and_count(*args: Any, **kwargs: Any) -> Any:
            self.skipped[reason] += 1
            out = run(*args, **kwargs)
            if traits.packet in UNFILLED and isinstance(out, Tensor):
                with DisableTorchFunction():
                    self.memory.note(out, True)  # nothing is there yet
            return out

        return run_and_count

    def _around_writing(self, traits: OpTraits, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_between_looks(*args: Any, **kwargs: Any) -> Any:
            written = written_tensors(traits, args, kwargs)
            was_finite = not asks_before(traits) or self._ask(traits, args, kwargs, written)
            out = run(*args, **kwargs)
            is_simple = type(out) is Tensor and was_finite and len(written) == 1 and out is written[0]
            if not is_simple or not self._is_plainly_fine(out, is_whole=False):
                self._settle(traits, args, kwargs, out, written, was_finite)
            return out

        return run_between_looks

    def describe(self, func: Any) -> tuple[str | None, bool, bool, bool, bool, bool, list[int]]:
        """Returns what the library needs to know of an op; the arguments it writes to by their number."""
        traits, arguments = traits_of(func), func._schema.arguments
        named = [number for number, arg in enumerate(arguments) if arg.name in traits.written_names and arg.kwarg_only]
        is_uninitialised = traits.packet in UNFILLED
        flags = is_uninitialised, asks_before(traits), traits.is_random, traits.packet in CASTS, may_wrap(traits)
        return traits.leave_out, *flags, [*traits.written, *named]

    def ask_about(self, func: Any, args: Any, kwargs: Any) -> bool:
        """Returns whether what an op is about to write to was finite, for the library."""
        traits = traits_of(func)
        return self._ask(traits, args, kwargs, written_tensors(traits, args, kwargs))

    def look_at(self, func: Any, args: Any, kwargs: Any, out: Any, was_finite: bool) -> None:
        """Checks closely what the library calls unusual."""
        traits = traits_of(func)
        self._settle(traits, args, kwargs, out, written_tensors(traits, args, kwargs), was_finite)

    def close(self) -> None:
        """Adds what the library has counted, and lets go of what knows of this object."""
        del self.local_ops
        if self.native is not None:
            checked, left_out, spent = self.native.counts()
            self.checked += checked
            self.skipped.update(left_out)
            self.recording.spent.add_all(spent)
            self.native = None

    def _ask(self, traits: OpTraits, args: Any, kwargs: Any, written: list[Tensor]) -> bool:
        with DisableTorchFunction():
            if all(self.memory.was_finite(tensor) for tensor in written):  # a question not asked yet says no
                return True
        return self._counted(traits, lambda: self._look_before(args, kwargs, written)) is not False

    def _settle(
        self, traits: OpTraits, args: Any, kwargs: Any, out: Any, written: list[Tensor], was_finite: bool
    ) -> None:
        finding = self._counted(traits, lambda: self._look(traits, args, kwargs, out, written, was_finite))
        if finding is not None and self.stop:
            self.error = NonFiniteError(Message(f"{traits.name}: ", finding.message))
            raise self.error

    def _is_plainly_fine(self, out: Tensor, is_whole: bool) -> bool:
        """Returns whether one sum shows a result to be finite and far from underflow: usual, and a tenth as costly."""
        started, grad = perf_counter_ns(), torch.is_grad_enabled()
        if grad:
            torch._C._set_grad_enabled(False)
        try:
            with DisableTorchFunction():
                least = LEAST_MEAN.get(out.dtype)
                if least is None or _len_torch_dispatch_stack() or out.is_meta or out.layout is not torch.strided:
                    return False
                if out._is_zerotensor():  # zeros without memory: here they cannot be read
                    return False
                if not is_whole and self.memory.was_finite(out) is False:
                    return False
                # Finite values that are too large to add up are looked at closely, as are those that sum to nothing.
                if not least * out.numel() < abs(out.sum().item()) < inf:
                    return False
                self.memory.note(out, True)
            self.checked += 1
            return True
        except Exception:  # a tensor of functorch, say, whose values cannot be asked for
            return False
        finally:
            if grad:
                torch._C._set_grad_enabled(True)
            self.recording.spent.add(started, perf_counter_ns())

    def _counted(self, traits: OpTraits, work: Callable[[], Any]) -> Any:
        """Returns the result of `work`; counts errors of our own by op."""
        reason = f"could not be looked at: {traits.name}"
        on_trouble = lambda error: self.skipped.update([f"{reason} ({type(error).__name__})"])  # noqa: E731
        return timed_isolated(self.recording, work, on_trouble)

    def _look_before(self, args: Any, kwargs: Any, written: list[Tensor]) -> bool:
        """Returns whether what is about to be written to was finite."""
        positions = {id(tensor): position for position, tensor in enumerate(all_tensors(args, kwargs))}
        readable = [self._was_finite(tensor, positions.get(id(tensor), 0)) for tensor in written if is_readable(tensor)]
        return all(readable)  # after all of them have been looked at

    def _was_finite(self, tensor: Tensor, position: int) -> bool:
        known: bool | None = self.memory.was_finite(stored(tensor))
        if known is not None:
            return known
        is_finite = isfinite(largest(tensor))
        self.memory.note(stored(tensor), is_finite)
        if not is_finite:
            self._add(from_outside(tensor, position))
        return is_finite

    def _look(
        self, traits: OpTraits, args: Any, kwargs: Any, out: Any, written: list[Tensor], was_finite: bool
    ) -> BadTensor | None:
        made = [*tensors_in(out)]
        # What else it returns is memory for its backward op: log_alpha of the CTC loss holds -Inf by definition.
        notes = range(len(made))[traits.values :] if traits.values is not None else range(0)
        made += [tensor for tensor in written if not any(tensor is result for result in made)]
        first_finding, reported = None, len(self.bad)
        if traits.packet in CASTS and (found := saturated_of(traits, args, made[0], 0)) is not None:
            first_finding = self._add(found)
            self.checked += not is_readable(made[0])  # else below
        elif may_wrap(traits) and (found := wrapped_of(traits, args, kwargs, made[0], 0)) is not None:
            first_finding = self._add(found)
            self.checked += 1
        for position, tensor in enumerate(made):
            if not is_readable(tensor):
                if is_float(tensor) and tensor.numel():
                    self.skipped[VALUELESS] += 1
                continue
            self.checked += 1
            greatest, finding = largest(tensor), None
            if isfinite(greatest):
                self._remember_part(tensor)
                if greatest < smallest_normal(tensor.dtype) and not written and not self._is_unseen(traits, position):
                    finding = self._underflow(traits, args, kwargs, tensor, position)
            else:
                self.held.append(Held(self.recording.ops.row_count, position, *infinities(tensor)))
                if position in notes:
                    self.memory.note(stored(tensor), False)
                    continue
                is_explained = not was_finite or any(bad.kind == "input" for bad in self.bad[reported:])
                finding = self._begun(traits, args, kwargs, written, tensor, position, is_explained)
            first_finding = first_finding or finding
        return first_finding

    def _begun(
        self,
        traits: OpTraits,
        args: Any,
        kwargs: Any,
        written: list[Tensor],
        tensor: Tensor,
        position: int,
        is_explained: bool,
    ) -> BadTensor | None:
        """Returns what began with a result that is not finite; None if it came in, or was there."""
        finding = None if is_explained else origin_of(traits, args, kwargs, written, tensor, position)
        has_mask = came_in = False
        if finding is None or finding.kind == "nan":  # an Inf that came in explains a NaN, too
            has_mask, came_in = self._look_outside(traits, args, kwargs, written)
        if finding is None or came_in:
            self.propagated += 1
            finding = None
            if (given := given_nan(traits, args, kwargs, tensor, position)) is not None:
                self._add(given)  # what becomes of it shows later
            if has_mask and not came_in and traits.packet in MOVING and not written:
                return None  # a mask still, which is nobody's result
        else:
            self._add(finding)
        self.memory.note(stored(tensor), False)
        return finding

    def _remember_part(self, tensor: Tensor) -> None:
        """Notes that what was written is finite; so is the storage if all of it was written or the rest was finite."""
        part = stored(tensor)
        storage = storage_of(part)
        is_whole = storage is None or part.numel() * part.element_size() == storage.nbytes()
        self.memory.note(part, is_whole or self.memory.was_finite(part) is not False)

    def _is_unseen(self, traits: OpTraits, position: int) -> bool:
        return traits.is_random or position >= visible_results(traits.func)

    def _underflow(self, traits: OpTraits, args: Any, kwargs: Any, tensor: Tensor, position: int) -> BadTensor | None:
        if not any(is_readable(tensor) for tensor in all_tensors(args, kwargs)):
            return None  # made of numbers: zeros, full, arange
        self.reruns += 1
        if self.reruns > MOST_RERUNS:
            self.skipped[MANY_RERUNS] += 1
            return None
        finding = underflow_of(traits, args, kwargs, tensor, position)
        return None if finding is None else self._add(finding)

    def _add(self, finding: BadTensor) -> BadTensor:
        finding.slot = self.recording.ops.row_count
        self.bad.append(finding)
        return finding

    def _look_outside(self, traits: OpTraits, args: Any, kwargs: Any, written: list[Tensor]) -> tuple[bool, bool]:
        """Reports non-finite inputs that no recorded op made, each storage once.

        Returns whether one is a mask, which is not reported, and whether one is reported.
        """
        has_mask, reported, tensors = False, len(self.bad), all_tensors(args, kwargs)
        overwritten = {storage_of(stored(tensor)) for tensor in written}
        for position, tensor in enumerate(tensors):
            if not is_readable(tensor) or storage_of(stored(tensor)) in overwritten:
                continue
            known = self.memory.was_finite(stored(tensor))
            if known is False or isfinite(largest(tensor)):
                continue
            if (known is None or tensor.dim() == 0) and is_given(traits, tensor, len(tensors)):
                has_mask = True
                continue
            self._add(unwritten(tensor, position) if known else from_outside(tensor, position))
            self.memory.note(stored(tensor), False)
        return has_mask, len(self.bad) > reported


def asks_before(traits: OpTraits) -> bool:
    """Returns whether it matters what was in the memory that an op writes to."""
    return bool(traits.written or traits.written_names) and traits.packet not in OVERWRITING and not traits.is_out


class LocalOps(StepMode):
    """Runs each op through `around` while entered, but for those on DTensors, which torch takes apart first."""

    def __init__(self, around: Callable[[Any, Run], Run]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.around = around
        self.runners: dict[Any, Run] = {}

    def taking_apart(self, run: Run, run_and_look: Run) -> Run:
        """Returns what runs an op by `run_and_look`, one on DTensors by `run` while what that calls is seen."""

        def run_or_take_apart(*args: Any, **kwargs: Any) -> Any:
            if dtensor_type() is None or not has_dtensor(all_tensors(args, kwargs)):
                return run_and_look(*args, **kwargs)
            with self:
                return run(*args, **kwargs)

        return run_or_take_apart

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if has_dtensor_type(types):
            return NotImplemented
        if is_shape_question(types) or traits_of(func).packet in UNFILLED:  # memory for fakes, mostly
            return func(*args, **kwargs)
        run = self.runners.get(func)
        if run is None:
            run = self.runners[func] = self.around(func, func)
        return run(*args, **kwargs)


class Memory:
    """Holds whether all that was written to a storage is finite, by the number of the storage in the recording."""

    def __init__(self, registry: TensorRegistry) -> None:
        self.registry = registry
        self.is_finite: dict[int, bool] = {}

    def note(self, tensor: Tensor, is_finite: bool) -> None:
        """Notes whether a tensor is finite; nothing for layouts without a storage."""
        storage = storage_of(tensor)
        if storage is not None:
            self.is_finite[self.registry.storage_number(storage, tensor.device)] = is_finite

    def was_finite(self, tensor: Tensor) -> bool | None:
        """Returns whether what was written to its storage is finite; None if nothing is known of it."""
        storage = storage_of(tensor)
        number = None if storage is None else self.registry.find_storage(storage)
        return None if number is None else self.is_finite.get(number)


def stored(tensor: Tensor) -> Tensor:
    """Returns the part of a tensor that lies in a storage: the values of a sparse one, else the tensor itself."""
    if tensor.layout is torch.sparse_coo:
        return tensor._values()
    is_compressed = tensor.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
    return tensor.values() if is_compressed else tensor


def storage_of(tensor: Tensor) -> torch.UntypedStorage | None:
    """Returns the storage of a tensor; None for layouts without one."""
    try:
        return tensor.untyped_storage()
    except RuntimeError:
        return None
