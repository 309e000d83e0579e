"""Says whether a step fits a memory, and else which modules to checkpoint: fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from nbkit import units
from nbkit.capture.cost.fits.candidates import Candidate, candidates, timeline
from nbkit.capture.cost.fits.choice import Choice
from nbkit.capture.cost.what_if.changed_step import Known, observe, observe_changed
from nbkit.capture.cost.what_if.changes import Attention, Changes
from nbkit.capture.cost.what_if.checkpointing import checkpoint_code
from nbkit.capture.cost.what_if.difference import measures, peak_bytes
from nbkit.capture.cost.what_if.sizes import Size
from nbkit.errors import OptionError
from nbkit.patterns import path_matcher
from nbkit.trace.trace import Trace

# Runs of the step: to find the cheapest set, then one that fits at all, and the one that comes closest.
CHEAPEST_RUNS, ANY_RUNS, CLOSEST_RUNS = 12, 6, 3
SHOWN_PATHS = 6


@dataclass(frozen=True, repr=False)
class Fits:
    """Answers whether a step fits a memory; true if it does as it is.

    Args:
        memory_bytes: the memory that was asked for.
        peak_bytes: the most that the step holds at one time, as it is.
        trace: the trace of opcost of the step with `checkpoint`, as it is where that is empty.
        checkpoint: paths of the modules to checkpoint, for `what_if(step, checkpoint=...)`; empty if it fits as it is.
        needed_bytes: the peak of `trace`.
        added_flops: FLOPs (2 x multiply-adds) that `trace` has more than the step as it is.
        is_cheapest: whether no other set of modules was found that fits and could add fewer FLOPs.
    """

    memory_bytes: int
    peak_bytes: int
    trace: Trace
    checkpoint: tuple[str, ...]
    needed_bytes: int
    added_flops: int
    is_cheapest: bool

    def __bool__(self) -> bool:
        return self.peak_bytes <= self.memory_bytes

    @property
    def missing_bytes(self) -> int:
        """Returns the bytes that are missing with `checkpoint`; 0 if it fits so."""
        return max(self.needed_bytes - self.memory_bytes, 0)

    @property
    def checkpoint_code(self) -> str:
        """Returns Python whose function checkpoint_modules(model) checkpoints what `trace` has so; '' for none."""
        return checkpoint_code(self.trace.meta.get("checkpointed", {}))

    def __repr__(self) -> str:
        size = units.data_size
        if self:
            return f"Yes: the peak is {size(self.peak_bytes)} of {size(self.memory_bytes)}."
        more = size(self.peak_bytes - self.memory_bytes)
        head = f"No: the peak is {size(self.peak_bytes)}, {more} more than {size(self.memory_bytes)}."
        if not self.checkpoint:
            return f"{head} No checkpointing of modules lowers it."
        paths = ", ".join(map(repr, self.checkpoint[:SHOWN_PATHS]))
        if len(self.checkpoint) > SHOWN_PATHS:
            paths += f" and {units.counted(len(self.checkpoint) - SHOWN_PATHS, 'more module')}"
        cost = f"{units.flops(self.added_flops)} more"
        if self.missing_bytes:
            return (
                f"{head} No checkpointing of modules makes it fit: the best found needs {size(self.needed_bytes)}, "
                f"{size(self.missing_bytes)} too much, with {cost}: checkpoint {paths}."
            )
        which = "" if self.is_cheapest else " (others may be cheaper)"
        return f"{head} It fits in {size(self.needed_bytes)} with {cost}{which}: checkpoint {paths}."


def fits(  # noqa: PLR0913  each is a condition of its own, by keyword
    step: Callable[[], object],
    memory: str | int | float,
    *,
    checkpoint: str | Sequence[str] = "*",
    batch_size: Size | None = None,
    sequence_length: Size | None = None,
    dtype: torch.dtype | None = None,
    sdpa: Attention | None = None,
    optimizer: Callable[..., Any] | None = None,
    foreach: bool | None = None,
    tensor_parallel: int | None = None,
    fully_sharded: int | None = None,
) -> Fits:
    """Returns whether a step stays within a memory, and if not, which modules to checkpoint so that it does.

    The step runs on shapes alone, as in `opcost`. The answer is true if it fits as it is. Else the set of modules is
    chosen that adds the fewest FLOPs (of equal ones: moves the fewest bytes), by scipy's milp over a linear model of
    the step's memory; the step runs again with each set that is tried, and what is reported is what that run needs.
    If nothing is found that fits, the answer holds the set that came closest, and `missing_bytes`.

    The peak is that of tensors alone, on the device where it is the largest: no context of a driver, no fragmentation.

    Args:
        step: the function that opcost().run() takes, called without arguments.
        memory: bytes, or text such as "24 GiB" or "80 GB".
        checkpoint: patterns of module paths that may be checkpointed.
        batch_size: a condition of the step, as in `what_if`, like all that follow.
        sequence_length: new size of the second dimension of the inputs.
        dtype: floating dtype of parameters, buffers and inputs.
        sdpa: backend of scaled_dot_product_attention.
        optimizer: class of an optimizer, or function that makes one of parameter groups.
        foreach: that option of the optimizers.
        tensor_parallel: number of ranks that split Linear layers; the memory is that of one rank.
        fully_sharded: number of ranks that share parameters, gradients and optimizer state; the same.

    Raises:
        OptionError: for a size that is none, a condition that changes nothing, or if scipy is needed and not there.
        CostError: where the step does not run under the conditions; and as from `opcost`.
    """
    limit = units.bytes_of(memory)
    may = path_matcher(checkpoint)
    changes = Changes(
        batch_size, sequence_length, dtype, None, sdpa, optimizer, foreach, tensor_parallel, fully_sharded
    )
    before = observe(step)
    start = observe_changed(step, changes, before) if str(changes) else before
    peak = peak_bytes(start.trace)
    if peak <= limit:
        return Fits(limit, peak, start.trace, (), peak, 0, True)
    # The root has no name by which a change could mean it.
    paths = {path for _, _, called in start.called_models() for path in called if path}
    chosen = frozenset(filter(may, paths))
    if paths and not chosen:
        raise OptionError(
            f"checkpoint={checkpoint!r} matches no module that runs; paths are such as "
            f"{', '.join(map(repr, sorted(paths)[:SHOWN_PATHS]))}."
        )
    return _Search(step, changes, before, start, limit, chosen.__contains__).answer()


class _Search:
    """Looks for the cheapest set of modules whose checkpointing makes a step fit."""

    def __init__(
        self,
        step: Callable[[], object],
        changes: Changes,
        before: Known,
        start: Known,
        limit: int,
        may: Callable[[str], bool],
    ) -> None:
        self.step, self.changes, self.before, self.start, self.limit = step, changes, before, start, limit
        self.peak = peak_bytes(start.trace)
        self.found: list[Candidate] = candidates(start.trace, may)
        self.memory = timeline(start.trace, self.found)
        self.choice = Choice(self.found, self.memory)
        self.closest: tuple[int, tuple[str, ...], Trace] = self.peak, (), start.trace
        self.margin = 0

    def answer(self) -> Fits:
        if self.found and not self._fitting(CHEAPEST_RUNS):
            # The linear model promised too much each time: ask it for more than is needed.
            is_proven, self.choice.is_proven = self.choice.is_proven, False
            if not self._fitting(ANY_RUNS, with_margin=True):
                self._come_closer()
            self.choice.is_proven = is_proven and self.closest[0] > self.limit
        needed, paths, trace = self.closest
        added = _flops(trace) - _flops(self.start.trace)
        return Fits(self.limit, self.peak, trace, paths, needed, added, self.choice.is_proven)

    def _fitting(self, runs: int, with_margin: bool = False) -> bool:
        for _ in range(runs):
            chosen = None if with_margin else self.choice.cheapest(self.limit)
            # A set that keeps a margin is as good as one that does not, if it adds no more FLOPs.
            careful = self.choice.cheapest(self.limit - self.margin) if self.margin or with_margin else None
            if careful is not None and (chosen is None or self.choice.flops @ careful <= self.choice.flops @ chosen):
                chosen = careful
            if chosen is None:
                return False
            if self._run(chosen) <= self.limit:
                return True
        return False

    def _come_closer(self) -> None:
        for _ in range(CLOSEST_RUNS):
            chosen = self.choice.smallest()
            if chosen is None or not chosen.any():
                return
            cheaper = self.choice.cheapest(self.memory.peak_bytes(chosen))
            self._run(chosen if cheaper is None or not cheaper.any() else cheaper)

    def _run(self, chosen: np.ndarray) -> int:
        """Returns the peak of the step with a set checkpointed, which is chosen no more if it does not fit."""
        paths = tuple(each.path for each, is_chosen in zip(self.found, chosen, strict=True) if is_chosen)
        trace = observe_changed(self.step, replace(self.changes, checkpoint=paths), self.before).trace
        peak = peak_bytes(trace)
        self.margin = max(self.margin, peak - self.memory.peak_bytes(chosen))
        self.choice.refuse(chosen)
        if peak < self.closest[0]:
            self.closest = peak, paths, trace
        return peak


def _flops(trace: Trace) -> int:
    of = measures(trace)
    return of["forward_flops"] + of["backward_flops"]
