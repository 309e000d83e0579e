"""opstable: run each call of a step again, from the same inputs, and see whether the bits are the same."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nbkit import units
from nbkit.capture.calls.thread_state import dispatch_modes
from nbkit.capture.operators.copies import is_plain
from nbkit.capture.operators.intercept import Intercepted, Interceptor
from nbkit.capture.operators.stable.again import CHECKS, DIFFERS, SAME, Again, ThreadCounts
from nbkit.capture.recorder.observer import Frames, Meta
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.replay.copies import tensors_in
from nbkit.capture.replay.isolated import isolated
from nbkit.capture.replay.muted_warnings import MutedWarnings
from nbkit.capture.replay.op_traits import OpTraits, draws, written_tensors
from nbkit.capture.replay.overlap import overlap
from nbkit.capture.scope.filters import CallFilters, with_filters
from nbkit.errors import OptionError, nearest
from nbkit.findings.finding import line_texts, with_findings
from nbkit.findings.operators import stability_findings
from nbkit.ops.undeclared import NONDETERMINISTIC, NONDETERMINISTIC_ON_CUDA
from nbkit.patterns import Patterns, split_patterns
from nbkit.schema import STABILITY
from nbkit.trace.checks import checked_count
from nbkit.trace.trace import Trace

COLUMNS = {"batch": "batch_invariant", "threads": "thread_invariant", "strides": "stride_invariant"}
OWN = ("call", "run_to_run", *COLUMNS.values(), "max_ulp", "max_difference_fraction")
TEXTS = ("beyond_rounding", "documented", "message")
RERUNS, ALIKE = 2, 2
NO_CHECKS: frozenset[str] = frozenset()
OTHER_BITS = "sparse and quantized tensors"
TAG = getattr(torch.Tag, "nondeterministic_bitwise", None)


@with_filters
class opstable(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Runs each call of a step again from the same inputs and compares bits; gives a Trace with `stability`.

    Each aten op, forward, backward and optimizer, runs `reruns` times more, then with its batch sliced, permuted and
    padded, with another number of threads, and with inputs of other strides and the same values. The step itself
    computes the same bits as without. A call whose bits change from run to run is a finding. That bits depend on batch,
    threads or strides is true of many right kernels, and told in `stability`. Random ops are not run again; they are
    counted in `meta["skipped"]` with all else that is not.

    Args:
        reruns: so many times each call runs again as it was.
        checks: which of "batch", "threads" and "strides" are tried, too; all if None. "batch" takes ops whose rows
            along dim 0 are known to be independent of each other.
        alike: of calls of an op with the same shapes, dtypes and strides these checks take so many; all if None.
        **filters: those of CallFilters.
        name: what the trace is called where it is shown.

    Raises:
        PatternError, OptionError: before anything runs.
    """

    verb = "opstable"

    def __init__(
        self,
        *,
        reruns: int = RERUNS,
        checks: Patterns = None,
        alike: int | None = ALIKE,
        name: str | None = None,
        **filters: Unpack[CallFilters],
    ) -> None:
        counts = checked_count("reruns", reruns), None if alike is None else checked_count("alike", alike)
        observer = StableObserver(counts, _checked_checks(checks), filters)
        super().__init__(observer, name=name)


def _checked_checks(checks: Patterns) -> frozenset[str]:
    if checks is None:
        return frozenset(CHECKS)
    names = split_patterns(checks)
    for name in names:
        if name not in CHECKS:
            raise OptionError(f"checks={name!r} is not known; {nearest(name, CHECKS)}")
    return frozenset(names)


class StableObserver(Interceptor):
    """Runs chosen calls again; adds the frame `stability`."""

    def __init__(self, counts: tuple[int, int | None], checks: frozenset[str], filters: CallFilters) -> None:
        super().__init__(filters)
        (self.reruns, self.alike), self.checks = counts, checks
        self.met: Counter[Any] = Counter()  # calls of each op with the same shapes, dtypes and strides
        self.rows: list[tuple[int, Again, str | None]] = []  # `seen` of the call, what was found, what torch documents
        self.thread_counts = ThreadCounts()

    def skipped(self, reason: str) -> str:
        return f"not run again: {reason}"

    def refuses(self, call: Intercepted) -> str | None:
        """Returns why the call cannot run again."""
        if dispatch_modes():  # further ones than the recorder's: a call of ours they would see, too
            return "ops below a dispatch mode of the step's own, which may change what they do"
        for tensor in call.tensors():
            if not is_plain(tensor):
                return "tensor subclasses"
        if _has_other_bits(call.tensors()):
            return OTHER_BITS
        if call.traits.is_random and draws(call.traits, call.args, call.kwargs):
            return "random ops, which draw other numbers each time"
        if call.traits.is_writing and overlap(written_tensors(call.traits, call.args, call.kwargs)):
            return "ops that write to tensors which share memory"
        return None

    def run(self, call: Intercepted) -> Any:
        def tell(error: Exception) -> None:
            call.mode.skipped[f"could not run again: {call.traits.name}"] += 1

        checks = self.checks if self._is_new(call) else NO_CHECKS
        again = call.mode.isolated(lambda: Again(call, self.reruns, checks), tell)
        out = call.run()
        if again is not None:
            call.mode.isolated(lambda: self._check(call, again, out), tell)
        return out

    def _is_new(self, call: Intercepted) -> bool:
        """Whether few calls like this one have been tried otherwise."""
        if self.alike is None or not self.checks:
            return True
        alike = (call.traits.func, *((one.shape, one.dtype, one.stride()) for one in call.tensors()))
        self.met[alike] += 1
        return self.met[alike] <= self.alike

    def _check(self, call: Intercepted, again: Again, out: Any) -> None:
        if _has_other_bits(tensors_in(out)):
            call.mode.skipped[OTHER_BITS] += 1
            return
        again.check(out)
        if "threads" in again.checks and again.verdicts["run_to_run"] == SAME:
            self.thread_counts.add(again)
        # Nothing of the step is kept alive.
        again.expected, again.arguments = [], ((), {})
        del again.judge
        self.rows.append((call.seen, again, documented(call.traits, call.tensors())))
        del again.call

    def progress(self) -> str:
        return f"{units.counted(len(self.rows), 'call')} run again"

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        super().frames(trace, ops, op_ids)
        with isolated(), MutedWarnings() as muted:
            muted.run(self.thread_counts.run)
        rows = [_row(again, known) for _, again, known in self.rows]
        columns = {name: [row[name] for row in rows] for name in (*OWN, *TEXTS)}
        frame = self.frame(STABILITY, [seen for seen, _, _ in self.rows], ops, op_ids, columns)
        unstable = int((frame["run_to_run"] == DIFFERS).sum())
        return {"stability": frame}, {"rerun_ops": len(frame), "unstable_ops": unstable, "reruns": self.reruns}

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        found = stability_findings(frames["stability"], frames["ops"], line_texts(frames["lines"]))
        return with_findings(frames, found), meta

    def forget(self) -> None:
        super().forget()
        self.rows, self.thread_counts, self.met = [], ThreadCounts(), Counter()


def _has_other_bits(tensors: Iterable[Tensor]) -> bool:
    """Whether the values of a tensor are more than its elements: those of a view of their bits."""
    return any(tensor.layout is not torch.strided or tensor.is_quantized for tensor in tensors)


def _row(again: Again, known: str | None) -> dict[str, Any]:
    return {
        "call": again.number,
        "run_to_run": again.verdicts["run_to_run"],
        **{column: again.verdicts.get(name) for name, column in COLUMNS.items()},
        "max_ulp": again.max_ulp,
        "max_difference_fraction": again.max_fraction,
        "beyond_rounding": again.beyond_rounding,
        "documented": known,
        "message": "; ".join([*again.messages, *([known] if known else [])]) or None,
    }


def documented(traits: OpTraits, tensors: list[Tensor]) -> str | None:
    """Returns what torch documents of an op that may give other bits each time; None if nothing."""
    if traits.packet in NONDETERMINISTIC:
        return "torch documents it as nondeterministic"
    is_tagged = TAG is not None and TAG in traits.func.tags
    if (traits.packet in NONDETERMINISTIC_ON_CUDA or is_tagged) and any(not one.is_cpu for one in tensors):
        return "torch documents it as nondeterministic on CUDA"
    return None
