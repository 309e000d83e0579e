"""The dispatch mode below the recorder's: copies the inputs of each op, runs it unchanged, then runs the reference."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch import Tensor

from nbkit.capture.diff.judge import Judge, could_not
from nbkit.capture.diff.options import Scope
from nbkit.capture.diff.pair import rounds_once
from nbkit.capture.diff.random_ops import DrawHistory, check_random
from nbkit.capture.diff.random_repeats import generator_state
from nbkit.capture.diff.result_dtypes import ResultDtypes
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.tensor_registry import PLAIN
from nbkit.capture.replay.below_mode import CallMode, has_no_values
from nbkit.capture.replay.copies import all_tensors, mapped_call, tensors_in
from nbkit.capture.replay.op_traits import OpTraits, draws, written_tensors
from nbkit.capture.replay.overlap import overlap
from nbkit.capture.replay.reference import Call, NoKernelError, Reference, Results
from nbkit.capture.scope.call_scope import CallScope
from nbkit.capture.scope.module_scope import ModuleScope
from nbkit.ops.families import NUMBERS


def leaves_out(traits: OpTraits) -> str | None:
    """Returns why no call of an op is compared; numbers are, though they are no tensors."""
    return None if traits.packet in NUMBERS else traits.leave_out


class DiffMode(CallMode):
    """Compares each op that the recorder above it runs; what the op returns is passed on as it is."""

    def __init__(
        self, recording: Recording, reference: Reference, judge: Judge, scope: Scope, modules: ModuleScope
    ) -> None:
        super().__init__(recording)
        self.reference, self.judge, self.scope = reference, judge, scope
        self.call_scope = CallScope(recording, modules, scope.selection, scope.phases, leaves_out=leaves_out)
        self.result_dtypes, self.random_ops = ResultDtypes(), DrawHistory(self.skipped)
        self.calls: Counter[int] = Counter()
        self.compared = 0
        self.call = -1  # the number of the last one in `rows`: the slot of its rows here
        # Told right after a call was compared: (slot, what it made, what the reference made of it, its arguments).
        self.on_compared: Callable[[int, Results, Results, tuple[Any, Any]], None] | None = None

    def ran(self, seen: int, traits: OpTraits, args: Any, kwargs: Any) -> Any:
        self.call = seen
        reason = self.call_scope.why_not(traits) or self._not_sampled(traits)
        if reason is not None:
            self.skipped[reason] += 1
            return self.run(traits, args, kwargs)
        return (self._number if traits.packet in NUMBERS else self._compared)(traits, args, kwargs)

    def _number(self, traits: OpTraits, args: Any, kwargs: Any) -> Any:
        """Runs an op that returns a number or a bool, which must be that of the same tensors on the CPU."""
        out = self.run(traits, args, kwargs)
        tensors, most = all_tensors(args, kwargs), self.scope.max_bytes
        if most is not None and self.reference.size_of(tensors) > most:
            self.skipped[f"ops whose inputs take more than max_bytes={most} on the reference"] += 1
        elif not self._has_no_values(tensors):
            self.isolated(lambda: self._compare_number(traits, args, kwargs, out), self._trouble(traits, "failed"))
        return out

    def _compare_number(self, traits: OpTraits, args: Any, kwargs: Any, out: Any) -> None:
        copies = mapped_call(args, kwargs, lambda value: value.to("cpu") if isinstance(value, Tensor) else value, {})
        expected = traits.func(*copies[0], **copies[1])
        is_same = out == expected or (out != out and expected != expected)  # NaN equals itself here
        self._row(traits, "ok" if is_same else "mismatch", None if is_same else f"{out!r}, expected {expected!r}")
        self.compared += 1

    def _not_sampled(self, traits: OpTraits) -> str | None:
        number, every = self.calls[id(traits.func)], self.scope.every
        self.calls[id(traits.func)] += 1
        return f"not sampled (one call of an op in {every} is)" if number % every else None

    def _compared(self, traits: OpTraits, args: Any, kwargs: Any) -> Any:
        tensors = all_tensors(args, kwargs)
        prepared = self.isolated(lambda: self._prepare(traits, args, kwargs, tensors), self._trouble(traits, "skipped"))
        out = self.run(traits, args, kwargs)
        if prepared is not None:
            self.isolated(lambda: self._compare(traits, prepared, out, (args, kwargs)), self._trouble(traits, "failed"))
        return out

    def _trouble(self, traits: OpTraits, status: str) -> Callable[[Exception], None]:
        def tell(error: Exception) -> None:
            self.skipped[f"could not be compared: {traits.name}"] += 1
            self._row(traits, status, could_not(error))

        return tell

    def _row(self, traits: OpTraits, status: str, message: str | None, actual: Tensor | None = None) -> None:
        self.judge.add_row(self.call, traits, "output", 0, actual, status=status, message=message)

    def _prepare(self, traits: OpTraits, args: Any, kwargs: Any, tensors: list[Tensor]) -> Call | None:
        if self._has_no_values(tensors):
            return None
        if self.scope.max_bytes is not None:
            size = self.reference.size_of(tensors)
            if size > self.scope.max_bytes:
                message = f"its inputs take {size} bytes on the reference; max_bytes is {self.scope.max_bytes}"
                self.skipped[f"ops whose inputs take more than max_bytes={self.scope.max_bytes} on the reference"] += 1
                self._row(traits, "skipped", message, tensors[0])
                return None
        if traits.is_writing and overlap(written_tensors(traits, args, kwargs)):
            self.skipped["ops that write to tensors which share memory"] += 1
            self._row(
                traits, "skipped", "it writes to tensors which share memory; copies of them would not", tensors[0]
            )
            return None
        call = self.reference.copy(traits, args, kwargs)
        if traits.is_writing or "device" in kwargs or not all(tensor.is_cpu for tensor in tensors):
            # Else asked for by the judge, once there is reason to keep the call: most are right.
            call.origin = self.judge.capturer.origin(args, kwargs)
        call.dtypes = {tensor.dtype for tensor in tensors}
        call.generator_state = generator_state(args, kwargs) if traits.is_random else None
        return call

    def _has_no_values(self, tensors: list[Tensor]) -> bool:
        for tensor in tensors:  # most are plain, which is known sooner
            if type(tensor) not in PLAIN or tensor.is_meta or tensor.is_nested:
                break
        else:
            return False
        if (reason := has_no_values(tensors)) is not None:
            self.skipped[reason] += 1
        return reason is not None

    def _compare(self, traits: OpTraits, call: Call, out: Any, arguments: tuple[Any, Any]) -> None:
        slot = self.call
        if call.origin is not None:
            call.origin.has_run()
        actual = Results.of(traits, out, *arguments)
        if not actual.all or self._has_no_values(actual.all):
            return
        call.dtype, call.rounds_once = actual.all[0].dtype, rounds_once(actual.all[0])
        call.dtypes.update([tensor.dtype for tensor in actual.all])
        if len(call.dtypes) > 1 and call.reference.function is None:
            dtypes = self.result_dtypes.of(traits, *arguments)
            call.result_dtypes = dtypes if dtypes is not None and len(dtypes) == len(list(tensors_in(out))) else None
        if traits.is_random and draws(traits, call.args, call.kwargs):
            self.random_ops.generator_state = generator_state(*arguments)
            check_random(self.judge, slot, call, actual, self.random_ops)
            return
        if call.in_pieces and self.on_compared is None and self._settle_in_pieces(slot, call, actual, arguments):
            return
        try:
            expected = call.results(arguments)
        except NoKernelError as error:
            self.skipped[f"the reference has no kernel for it: {traits.name}"] += 1
            self._row(traits, "skipped", f"the reference has no kernel for it ({error})", actual.all[0])
            return
        expected.turn(traits.packet, actual)
        self.compared += 1
        if len(actual.all) != len(expected.all):
            count = len(actual.all)
            message = f"{count} tensor{'s' * (count != 1)}, expected {len(expected.all)}"
            self._row(traits, "shape", message, actual.all[0])
            return
        for index, tensor in enumerate(actual.all):
            role, position = role_of(actual, index, arguments)
            row = self.judge.add_row(slot, traits, role, position, tensor)
            self.judge.compare(row, tensor, call, expected, index, arguments)
        if self.on_compared is not None:
            self.on_compared(slot, actual, expected, arguments)

    def _settle_in_pieces(self, slot: int, call: Call, actual: Results, arguments: tuple[Any, Any]) -> bool:
        """Whether a large pointwise op is right beyond doubt; what else there is to say takes its whole reference."""
        if len(actual.all) != 1:
            return False
        tensor = actual.all[0]
        role, position = role_of(actual, 0, arguments)
        row = self.judge.add_row(slot, call.traits, role, position, tensor)
        try:
            is_settled = self.judge.settle_in_pieces(row, tensor, call)
        except Exception:  # of the reference: met again, and told of, where the whole is run
            is_settled = False
        if not is_settled:
            self.judge.rows.pop()
        self.compared += is_settled
        return is_settled


def role_of(results: Results, index: int, arguments: tuple[Any, Any]) -> tuple[str, int]:
    """Role and position of a compared tensor."""
    if index < len(results.outputs):
        return "output", index
    tensor = results.all[index]
    return "input", next(number for number, argument in enumerate(all_tensors(*arguments)) if argument is tensor)
