"""Describes a recorded step for the rules of waste: its ops and tensors as arrays, its parameters and modes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from nbkit.findings.time.step import Flags, Ints, TimedStep
from nbkit.ops.families import DRAWS, DROPOUTS
from nbkit.ops.names import packet_of
from nbkit.step.numbering import Numbering
from nbkit.step.step import Step

DRAWING = DRAWS | DROPOUTS


@dataclass(frozen=True)
class RecordedStep(Step, TimedStep):
    """Holds a step with its tensors; `modes` says of (model, module, module_call) whether it was in training mode.

    Its op_ids are rows of ops.
    """

    parameters: pd.DataFrame
    modes: Mapping[tuple[str, str, int], bool]

    @cached_property
    def firsts(self) -> Ints:
        """Returns the first op of its step that computed the same as each op, itself if none did; -1 of what is no op.

        Values are the same where the same op made them of the same values with the same arguments, and nothing wrote
        into their memory since. A draw, and what is not of aten, gives values of its own.
        """
        names, arguments, steps = (self.ops[name].tolist() for name in ("op", "arguments", "step"))
        numbering, of_step, is_op = Numbering(self), 0, self.is_op.tolist()
        firsts = np.full(len(self.ops), -1, dtype=np.int64)
        for call in self.calls():
            row = call.op_id
            if is_op[row]:
                if steps[row] != of_step:
                    numbering.forget()
                    of_step = steps[row]
                is_unique = not names[row].startswith("aten.") or packet_of(names[row]) in DRAWING
                firsts[row] = numbering.note(call, row if is_unique else (names[row], str(arguments[row])))
        return firsts

    @cached_property
    def dtypes(self) -> np.ndarray:
        return self.tensors["dtype"].to_numpy(object)

    @cached_property
    def is_parameter(self) -> Flags:
        """Returns which tensor rows are parameters, not buffers."""
        names = self.parameters["name"][self.parameters["kind"] == "parameter"]
        return self.tensors["name"].isin(names.tolist()).to_numpy(bool)

    @cached_property
    def held_names(self) -> Mapping[int, str]:
        """Returns the name of the parameter in each storage that holds one."""
        rows = np.flatnonzero(self.is_parameter & (self.memory >= 0))
        return dict(zip(self.memory[rows].tolist(), self.tensors["name"].iloc[rows].tolist(), strict=True))

    @cached_property
    def in_module(self) -> Flags:
        """Returns which ops of the forward pass a module runs."""
        return np.asarray(self.in_phase("forward") & self.ops["module"].notna().to_numpy(bool))

    def tensor_rows(self, ops: Ints, role: str, position: int = 0) -> Ints:
        """Returns the row of one tensor of each of these ops, by op; -1 of other ops, and of those that have none."""
        chosen = np.zeros(len(self.ops), dtype=bool)
        chosen[ops] = True
        at = np.flatnonzero(chosen[self.op_ids] & (self.is_output == (role == "output")))
        at = at[self.positions[at] == position]
        result = np.full(len(self.ops), -1, dtype=np.int64)
        result[self.op_ids[at]] = at
        return result

    def bytes_of(self, rows: Ints) -> int:
        """Returns the bytes of these tensors, those that share memory once."""
        rows = rows[self.memory[rows] >= 0]
        if not len(rows):
            return 0
        return int(pd.Series(self.sizes[rows]).groupby(self.memory[rows]).max().sum())
