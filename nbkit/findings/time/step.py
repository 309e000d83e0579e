"""Describes a timed step for the rules: its ops as arrays, how often it ran its model, and what counts as much."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit import units
from nbkit.findings.finding import Finding, at_ops
from nbkit.findings.time.cases import Inputs, Look, Measure, Saving, inputs_of
from nbkit.ops.names import packet_of
from nbkit.timeline.nesting import depth_levels, subtree_sums

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Forwards = Mapping[tuple[str, str], tuple[str, str | None]]  # by model and module
# What takes less of the step, or less time, is not worth a finding.
LEAST_FRACTION, LEAST_US = 0.05, 1_000.0
BACKWARD_CALLS = ("torch.autograd.backward", "torch.autograd.grad")


@dataclass(frozen=True)
class TimedStep:
    """Holds the ops of one run; `texts` are the lines of code by source, `measure` runs what could replace ops, and
    `look` looks at the state of optimizers.

    `is_slowed` says that others recorded the run, so that shares are told and times are not; `forwards` where the
    forward() of a module stands, and its first line.
    """

    ops: pd.DataFrame
    texts: Mapping[str, str]
    measure: Measure | None = field(default=None, kw_only=True)
    look: Look | None = field(default=None, kw_only=True)
    is_slowed: bool = field(default=False, kw_only=True)
    forwards: Forwards = field(default_factory=dict, kw_only=True)
    settings: Sequence[str] = field(default=(), kw_only=True)  # those of settings.py that are on

    @cached_property
    def whole_us(self) -> float:
        """Returns the wall time of the step, which is the first row."""
        return float(self.total_us[0]) if len(self.ops) else 0.0

    @cached_property
    def parent(self) -> Ints:
        """Returns the row of each op's parent, -1 at the top; op_ids are rows."""
        return self.ops["parent_id"].to_numpy(np.int64, na_value=-1)

    @cached_property
    def names(self) -> npt.NDArray[np.object_]:
        return self.ops["op"].to_numpy(object)

    @cached_property
    def total_us(self) -> Floats:
        return self.ops["total_time_us"].to_numpy(np.float64)

    @cached_property
    def start_us(self) -> Floats:
        return self.ops["start_us"].to_numpy(np.float64)

    @cached_property
    def thread(self) -> Ints:
        return self.ops["thread"].to_numpy(np.int64)

    @cached_property
    def main_ops(self) -> Ints:
        """Returns the rows of ops of the main thread that no other op called, in order of time."""
        return np.flatnonzero(self.is_outer & (self.thread == 0))

    @cached_property
    def is_op(self) -> Flags:
        return (self.ops["level"] == "aten").to_numpy(bool)

    @cached_property
    def is_outer(self) -> Flags:
        """Returns which rows are ops that no other op called."""
        above = np.append(self.is_op, False)[self.parent]
        return np.asarray(self.is_op & ~above)

    def in_phase(self, *phases: str) -> Flags:
        return self.ops["phase"].isin(phases).to_numpy(bool)

    def named(self, *names: str) -> Flags:
        """Returns which ops of aten have one of the names, without overload: item."""
        wanted = np.array([name in names for name in self.kinds], dtype=bool)
        return np.asarray(wanted[self.codes] & self.is_op)

    @property
    def codes(self) -> Ints:
        """Returns the index of each row's name in `kinds`."""
        return self._kinds[0]

    @property
    def kinds(self) -> list[str]:
        """Returns the different names of rows; those of ops of aten without namespace and overload."""
        return self._kinds[1]

    @cached_property
    def _kinds(self) -> tuple[Ints, list[str]]:
        codes, different = pd.factorize(self.names)
        return np.asarray(codes), [packet_of(str(name)) for name in different]

    def below(self, rows: Ints) -> Flags:
        """Returns which rows are these or stand below them; a parent stands before its children."""
        inside = np.zeros(len(self.ops) + 1, dtype=bool)  # the last entry answers for "no parent"
        inside[rows] = True
        for children in self._levels[1:]:
            inside[children] |= inside[self.parent[children]]
        return inside[:-1]

    def holding(self, flags: Flags) -> Flags:
        """Returns which ops are flagged, or have a flagged row below them."""
        return np.asarray((subtree_sums(self.parent, self._levels, flags.astype(np.int64)) > 0) & self.is_op)

    @cached_property
    def _levels(self) -> list[Ints]:
        return depth_levels(self.parent)

    @cached_property
    def passes(self) -> int:
        """Returns how often the step ran a model: calls of root models, backward passes or optimizer steps."""
        ops = self.ops
        roots = ((ops["level"] == "module") & (ops["module"] == "")).to_numpy(bool)
        is_backward = ops["op"].isin(BACKWARD_CALLS).to_numpy(bool)
        steps = int(ops["step"].iloc[-1]) if len(ops) else 0
        return max(int(roots.sum()), int(is_backward.sum()), steps, 1)

    def backward_us(self, rows: Flags) -> float:
        """Returns the time of the backward ops of these forward ops."""
        forward = self.ops["forward_op_id"].to_numpy(np.int64, na_value=-1)
        of_them = np.append(rows, False)[forward] & self.in_phase("backward")
        return float(self.ops["self_time_us"].to_numpy(np.float64)[of_them].sum())

    def is_much(self, time_us: float, fraction: float = LEAST_FRACTION) -> bool:
        """Returns whether so much time is worth a finding."""
        return time_us >= LEAST_US and time_us >= fraction * self.whole_us

    def share(self, time_us: float) -> str:
        """Writes a time and its share of the step: '12 % of the step (3.4 ms)'."""
        fraction = time_us / self.whole_us if self.whole_us else 0.0
        time = "" if self.is_slowed else f" ({units.duration(time_us)})"
        return f"{100 * fraction:.0f} % of the step{time}"

    def inputs(self, row: int) -> Inputs | None:
        """Returns the inputs of an op; null where they were not recorded."""
        return inputs_of(self.ops, row)

    @cached_property
    def has_backward(self) -> bool:
        return bool(self.in_phase("backward").any())

    def saved(self, saving: Saving | None, time_us: float) -> str | None:
        """Writes what of a time an alternative saves; '' where that is not known, null where it is not much."""
        if saving is None:
            return ""
        saved_us = saving.fraction * time_us
        return (
            f"; {saving.name}, run on the same shapes, saves at least {self.share(saved_us)}"
            if self.is_much(saved_us)
            else None
        )

    def lines(self, rows: Ints) -> list[Ints]:
        """Returns the rows by line and module, those of most time first; ops whose line is not known by module."""
        keys = self.ops[["source", "model", "module"]].iloc[rows]
        groups = keys.groupby(["source", "model", "module"], dropna=False, sort=False).indices
        chosen = [rows[index] for index in groups.values()]
        return sorted(chosen, key=lambda mine: -float(self.total_us[mine].sum()))

    def finding(self, finding: Finding, rows: Sequence[int] | Ints) -> Finding:
        """Returns the finding, placed at these rows; its effect is their time where it has none yet."""
        return at_ops(finding, self.ops, [*map(int, rows)], self.texts)
