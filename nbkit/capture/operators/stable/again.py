"""Runs a call again from the inputs it had, as it was and otherwise, and says where the bits are others."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from nbkit import units
from nbkit.capture.calls.state import as_recorded, call_state
from nbkit.capture.operators.copies import CallCopies
from nbkit.capture.operators.elsewhere import OTHER_GENERATORS
from nbkit.capture.operators.intercept import Intercepted
from nbkit.capture.operators.stable.batches import Batch, batch_of, changed
from nbkit.capture.operators.stable.beyond import Judge
from nbkit.capture.operators.stable.bits import Distance, Kept, is_trusted
from nbkit.capture.operators.stable.layouts import with_other_strides
from nbkit.capture.raw.conj_neg import as_bare
from nbkit.capture.replay.copies import all_tensors, tensors_in
from nbkit.capture.replay.isolated import threads
from nbkit.capture.replay.reference import Results

SAME, DIFFERS = "same", "differs"
# The checks after the first, which are of use where the op is the same from run to run.
CHECKS = ("batch", "threads", "strides")
# So many calls, or bytes of copies, wait for another number of threads: MKL takes milliseconds to change it.
MOST_CALLS, MOST_BYTES = 1000, 1 << 26
Arguments = tuple[Any, dict[str, Any]]
# What was done, how far off the results were, null for not at all, and whether by more than rounding.
Found = tuple[str, Distance | None, bool]


class Again:
    """Holds a call that is about to run, with copies of its inputs if it may write to them."""

    def __init__(self, call: Intercepted, reruns: int, checks: frozenset[str]) -> None:
        self.call, self.traits, self.reruns, self.checks = call, call.traits, reruns, checks
        self.has_gradients = call.has_gradients
        # As it is set now, when the call runs again after the step; but for the threads, in which it then differs.
        self.state = {name: value for name, value in call_state().items() if name not in ("threads", "autocast")}
        # What torch's own schema says it does not write to stays as it is.
        self.is_copied = self.traits.changes_arguments or self.traits.func.namespace != "aten"
        self.arguments: Arguments = (call.args, call.kwargs)
        self.shares_memory = False
        if self.is_copied:
            copies = CallCopies(self.traits, call.args, call.kwargs, None, {})
            self.arguments, self.shares_memory = (copies.args, copies.kwargs), bool(copies.regions)
        self.number = call.number
        self.judge = Judge(self.traits, self.arguments)
        self.expected: list[Kept] = []
        self.verdicts: dict[str, str | None] = {}
        self.messages: list[str] = []
        self.beyond_rounding: str | None = None
        self.max_ulp = self.max_fraction = 0.0

    def check(self, out: Any) -> None:
        """Runs the call again, now that it has given `out`; fills `verdicts`, `messages` and `max_ulp`."""
        self.expected = [Kept(one) for one in Results.of(self.traits, out, self.call.args, self.call.kwargs).all]
        self.note("run_to_run", self._repeated())
        if self.verdicts["run_to_run"] == DIFFERS or self.shares_memory:
            return
        if "batch" in self.checks:
            self.note("batch", self._batches(out))
        if "strides" in self.checks:
            self.note("strides", self._strides())

    def note(self, name: str, found: Sequence[Found]) -> None:
        """Takes what a check found; nothing was tried where that is empty."""
        off = [(what, how_far, is_far) for what, how_far, is_far in found if how_far is not None]
        self.verdicts[name] = None if not found else DIFFERS if off else SAME
        if off:
            what, worst, is_far = max(off, key=lambda one: (one[2], one[1]))
            size = "" if worst.max_ulp == float("inf") else f" by up to {units.general(worst.max_ulp, 3)} ULP"
            if size and isfinite(worst.fraction):
                size = f" by up to {worst.fraction:.2g} of the largest element ({size.removeprefix(' by up to ')})"
            message = f"{what}: {units.counted(worst.elements, 'element')} differ{'s' * (worst.elements == 1)}{size}"
            if is_far:
                message += ", far beyond rounding"
                self.beyond_rounding = self.beyond_rounding or message
            self.messages.append(message)
            self.max_ulp = max(self.max_ulp, worst.max_ulp)
            self.max_fraction = max(worst.fraction, self.max_fraction)  # NaN stays

    def run(self, arguments: Arguments, *, may_write: bool = False) -> tuple[Any, list[Tensor]]:
        """Returns what the op returns for these arguments, which stay as they are, and all results of the call."""
        if self.is_copied and not may_write:
            copies = CallCopies(self.traits, *arguments, None, {})
            arguments = copies.args, copies.kwargs
        with torch.set_grad_enabled(self.has_gradients):
            out = as_bare(self.traits.func._op, *arguments)
        return out, Results.of(self.traits, out, *arguments).all

    def _repeated(self) -> list[Found]:
        runs = (self.run(self.arguments)[1] for _ in range(self.reruns))
        return [("from run to run", apart(results, self.expected), False) for results in runs]

    def _strides(self) -> list[Found]:
        arguments = with_other_strides(self.traits, *self.arguments)
        results = None if arguments is None else self.tried(arguments)
        if results is None or not _are_alike(results[1], self.expected):
            return []
        is_far = self.judge.are_apart(results[1], self.expected)
        return [("with other strides", apart(results[1], self.expected), is_far)]

    def _batches(self, out: Any) -> list[Found]:
        batch = batch_of(self.traits, *self.arguments, out)
        if batch is None:
            return []
        chosen, everything = _chosen(out, batch), [kept.tensor for kept in self.expected]
        expected = [one.cpu() for one in chosen]
        places = [next(at for at, one in enumerate(everything) if one is mine) for mine in chosen]
        found = []
        for what, rows, compared in batch.variants():
            results = self.tried(changed(self.traits, *self.arguments, batch.arguments, rows))
            if results is None:
                continue
            others = [compared(one.cpu()) for one in _chosen(results[0], batch)]
            wanted = [Kept(one[: len(other)]) for one, other in zip(expected, others, strict=False)]
            if _are_alike(others, wanted):
                is_far = self.judge.are_apart(others, wanted, places)
                found.append((f"with a {what} batch", apart(others, wanted), is_far))
        return found

    def tried(self, arguments: Arguments) -> tuple[Any, list[Tensor]] | None:
        """Returns the same for arguments in memory of their own; None where the op does not take them."""
        try:
            return self.run(arguments, may_write=True)
        except (RuntimeError, ValueError, IndexError, NotImplementedError):
            return None


def apart(results: Sequence[Tensor], expected: Sequence[Kept]) -> Distance | None:
    """Returns the largest distance of results; None where all have the same bits."""
    if len(results) != len(expected):
        return Distance(float("inf"), len(expected))
    distances = [kept.distance(result) for result, kept in zip(results, expected, strict=True)]
    return max((one for one in distances if one is not None), default=None)


def _chosen(out: Any, batch: Batch) -> list[Tensor]:
    """The results that hold the rows of a batch."""
    if isinstance(out, Tensor):
        return [out] if batch.results[0] == 0 else []
    chosen = [out[index] for index in batch.results if index < len(out)]
    rows = next(tensors_in(out)).shape[:1]
    return [one for one in chosen if isinstance(one, Tensor) and one.shape[:1] == rows]


def _are_alike(results: Sequence[Tensor], expected: Sequence[Kept]) -> bool:
    """Whether there is something to compare."""
    shapes = [(one.shape, one.dtype) for one in results]
    return bool(shapes) and shapes == [(kept.tensor.shape, kept.tensor.dtype) for kept in expected]


class ThreadCounts:
    """Keeps copies of calls until they run in another number of threads."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Again, Arguments, list[Kept]]] = []
        self.bytes = 0

    def add(self, again: Again) -> None:
        """Keeps a call that has run; devices with threads of their own do not ask the CPU's."""
        kept = [one.tensor for one in again.expected]
        if not kept or any(tensor.device.type in OTHER_GENERATORS for tensor in kept):
            return
        copies = CallCopies(again.traits, *again.arguments, None, {})
        expected = [Kept((one if is_trusted(one) else one.cpu()).clone()) for one in kept]
        self.waiting.append((again, (copies.args, copies.kwargs), expected))
        tensors = [*all_tensors(copies.args, copies.kwargs), *kept, *kept]  # results and their bits
        self.bytes += sum(tensor.nbytes for tensor in tensors)
        if len(self.waiting) >= MOST_CALLS or self.bytes > MOST_BYTES:
            self.run()

    def run(self) -> None:
        """Runs all that wait; each gets its verdict."""
        waiting, self.waiting, self.bytes = self.waiting, [], 0
        if not waiting:
            return
        before = torch.get_num_threads()
        other = 2 if before == 1 else 1
        what = f"with {other} thread{'s' * (other > 1)} in place of {before}"
        with threads(other):
            for again, arguments, expected in waiting:
                with as_recorded(again.state):
                    results = again.tried(arguments)
                if results is not None:
                    # What an op has written to is not what it read.
                    is_kept = not again.traits.is_writing and apart(results[1], expected) is not None
                    is_far = is_kept and Judge(again.traits, arguments).are_apart(results[1], expected)
                    again.note("threads", [(what, apart(results[1], expected), is_far)])
