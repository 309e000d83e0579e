"""The ops frame from the raw record: rows in call order, linked to parents, forward ops, modules and source lines."""

from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.autograd_links import forward_ops
from nbkit.capture.dispatch import ACCUMULATE
from nbkit.capture.module_calls import ModuleCalls
from nbkit.capture.op_names import op_name
from nbkit.capture.recording import OP_FIELDS, OPTIMIZER_CODE, Context, OpRecord, Recording
from nbkit.capture.source import place_text
from nbkit.capture.strings import nullable, text_column
from nbkit.capture.tensor_rows import Texts
from nbkit.schema import OPS

INTEGERS = "sequence node start end first_tensor inputs outputs".split()
LEVELS = ["api", "aten"]
PHASES = ["forward", "backward", "optimizer", "other"]
FORWARD, BACKWARD, OPTIMIZER, OTHER = range(4)
BACKWARD_CALLS = frozenset({"torch.Tensor.backward", "torch.autograd.backward", "torch.autograd.grad"})


class OpRows:
    """The kept rows of a recording as arrays; frame() is the result, the rest is what the tensor rows need too."""

    def __init__(self, recording: Recording, modules: ModuleCalls) -> None:
        self.recording = recording
        self.modules = modules
        raw = {name: recording.ops[number::OP_FIELDS] for number, name in enumerate(OpRecord._fields)}
        if None in raw["name"]:  # a call that had not ended when the recording did
            done = [name is not None for name in raw["name"]]
            raw = {name: list(compress(column, done)) for name, column in raw.items()}
        else:
            done = [True] * len(raw["name"])
        rows = np.cumsum(done) - 1  # row of each slot
        contexts = np.array(raw["context"], dtype=np.int64).reshape(-1, len(Context._fields))
        integers = {name: np.array(raw[name], dtype=np.int64) for name in INTEGERS}
        integers |= {name: contexts[:, number] for number, name in enumerate(Context._fields)}
        self.raw, self.integers, self.count = raw, integers, len(raw["name"])
        parent = integers["parent"]
        self.parent = np.where(parent >= 0, rows[parent // OP_FIELDS], -1) if len(rows) else parent
        self.is_api = integers["first_tensor"] < 0
        failed = recording.failed_slot
        self.failed = int(rows[failed // OP_FIELDS]) if failed is not None and failed // OP_FIELDS < len(rows) else -1
        self.thread = integers["thread"]
        self.names, self.name_code = self._names()
        self.in_node = ~self.is_api & np.array([kind is not None for kind in raw["node_type"]], dtype=bool)
        self.accumulates = self.in_node & np.array([kind is ACCUMULATE for kind in raw["node_type"]], dtype=bool)
        self.made_node = self._made_node()
        self.forward = self._forward()
        self.root, self.module, self.call = self._modules()
        self.source_code, self.sources = self._sources()
        self.drop_empty_calls()

    def drop_empty_calls(self) -> None:
        """Leave out API calls that ran no op and returned no tensor (x.size(), torch.is_complex(x)): count them."""
        is_parent = np.zeros(self.count, dtype=bool)
        is_parent[self.parent[self.parent >= 0]] = True
        wanted = np.array([flag is True for flag in self.raw["node_type"]], dtype=bool)
        self.keep = ~self.is_api | is_parent | wanted
        self.empty_calls = int((~self.keep).sum())

    def _names(self) -> tuple[list[str], np.ndarray]:
        codes: dict[int, int] = {}
        functions: list[Any] = []
        column = np.empty(self.count, dtype=np.int64)
        for row, function in enumerate(self.raw["name"]):
            code = codes.get(id(function))
            if code is None:
                code = codes[id(function)] = len(functions)
                functions.append(function)
            column[row] = code
        return [op_name(function) for function in functions], column

    def _made_node(self) -> np.ndarray:
        """Whether autograd made a node for the op: its counter moved on since the op before, in that thread."""
        made = np.zeros(self.count, dtype=bool)
        for number in range(len(self.recording.threads)):
            rows = np.flatnonzero((self.thread == number) & ~self.is_api)
            readings = self.integers["sequence"][rows]
            made[rows] = np.diff(readings, prepend=self.recording.first_sequence if number == 0 else readings[:1]) > 0
        return made

    def _forward(self) -> np.ndarray:
        """Row of the forward op of every op that an autograd node ran; -1 for others."""
        forward = np.full(self.count, -1, dtype=np.int64)
        rows = np.flatnonzero(self.in_node & ~self.accumulates)
        if not len(rows):
            return forward
        nodes = self.integers["node"][rows]
        slices = np.array([self.raw["node_type"][row].__name__ == "CopySlices" for row in rows], dtype=bool)
        candidates = np.flatnonzero(~self.is_api & (self.thread == 0))
        found = forward_ops(
            nodes, slices, self.integers["sequence"][candidates], candidates, self.recording.first_sequence
        )
        forward[rows] = np.where(found < rows, found, -1)
        return forward

    def _modules(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Root number, module number and call number of each row; -1 outside any module."""
        calls = np.array(self.recording.module_calls, dtype=np.int64).reshape(-1, 3)
        roots = np.array([module.root for module in self.modules.called], dtype=np.int64)
        call = self.integers["module_call"].copy()
        rerun = np.zeros(self.count, dtype=bool)
        rerun[call >= 0] = calls[call[call >= 0], 2] > 0
        # A backward op belongs where its forward op ran; a part that is run again for the backward pass to itself.
        inherit = np.flatnonzero(self.in_node & ~rerun)
        call[inherit] = -1
        for row in inherit:
            if self.forward[row] >= 0:
                call[row] = call[self.forward[row]]
        inside = call >= 0
        module, number, root = (np.full(self.count, -1, dtype=np.int64) for _ in range(3))
        module[inside], number[inside] = calls[call[inside], 0], calls[call[inside], 1]
        root[inside] = roots[module[inside]]
        return root, module, number

    def _sources(self) -> tuple[np.ndarray, list[str | None]]:
        """Number of each row's source line: its own, else its API call's, else its forward op's."""
        texts = Texts()
        places, parent, forward = self.raw["place"], self.parent.tolist(), self.forward.tolist()
        codes = [-1] * self.count
        for row, (place, in_node) in enumerate(zip(places, self.in_node.tolist(), strict=True)):
            if place is not None:
                codes[row] = texts.code(place, place_text)
            elif in_node:
                codes[row] = (
                    codes[forward[row]] if forward[row] >= 0 else codes[parent[row]] if parent[row] >= 0 else -1
                )
            elif parent[row] >= 0:
                codes[row] = codes[parent[row]]
        return np.array(codes, dtype=np.int64), texts.texts

    def own(self, accumulated: dict[int, tuple[int, str]], paths: list[tuple[int, str]]) -> None:
        """Give the ops that add to a parameter's gradient the module that owns the parameter.

        `accumulated` maps a tensor record to (root, module path) of the parameter; `paths` are (root, path) of the
        modules by number, to which owners that did not run themselves are added.
        """
        numbers = {path: number for number, path in enumerate(paths)}
        for row in np.flatnonzero(self.accumulates & (self.module < 0)):
            owner = accumulated.get(int(self.integers["node"][row]))
            if owner is not None:
                if owner not in numbers:
                    numbers[owner] = len(paths)
                    paths.append(owner)
                self.module[row], self.root[row] = numbers[owner], owner[0]

    def phases(self) -> np.ndarray:
        """Phase of each row, as an index into PHASES."""
        in_module = self.integers["module_call"] >= 0
        phase = np.where(in_module, FORWARD, OTHER)
        phase[self.made_node] = FORWARD
        phase[self.integers["code"] == OPTIMIZER_CODE] = OPTIMIZER
        phase[self.in_node] = BACKWARD
        calls = np.array(self.recording.module_calls, dtype=np.int64).reshape(-1, 3)
        own_call = self.integers["module_call"]
        phase[in_module & (calls[own_call, 2] > 0 if len(calls) else False)] = BACKWARD
        backward_code = [code for code, name in enumerate(self.names) if name in BACKWARD_CALLS]
        starts = self.is_api & np.isin(self.name_code, backward_code)
        phase[starts | ((self.parent >= 0) & starts[self.parent])] = BACKWARD
        # An API call outside modules is what its ops are: walk up from the last child to the first.
        loose = self.is_api & (phase == OTHER)
        for row in np.flatnonzero((self.parent >= 0) & (phase != OTHER))[::-1]:
            if loose[self.parent[row]]:
                phase[self.parent[row]] = phase[row]
        # What a forward call does besides (it saves a detached result, say) is part of it.
        loose = (phase == OTHER) & (self.parent >= 0)
        phase[loose] = phase[self.parent[loose]]
        return phase

    def self_time(self, total: np.ndarray) -> np.ndarray:
        below = self.parent >= 0
        children = np.bincount(self.parent[below], weights=total[below], minlength=self.count)
        return total - children[: self.count]

    def frame(
        self,
        chosen: np.ndarray,
        labels: list[str],
        paths: list[tuple[int, str]],
        devices: tuple[np.ndarray, list[str | None]],
    ) -> pd.DataFrame:
        """The ops frame of the rows in `chosen`, ids dense."""
        ids = np.full(self.count + 1, -1, dtype=np.int64)  # the last entry answers for -1
        ids[chosen] = np.arange(len(chosen))
        total = (self.integers["end"] - self.integers["start"]) / 1e3
        columns = {
            "op_id": ids[chosen],
            "parent_id": nullable(ids[self.parent[chosen]]),
            "level": text_column(1 - self.is_api[chosen].astype(np.int64), LEVELS),
            "op": text_column(self.name_code[chosen], self.names),
            "model": text_column(self.root[chosen], labels),
            "module": text_column(self.module[chosen], [path for _, path in paths]),
            "module_call": nullable(self.call[chosen]),
            "phase": text_column(self.phases()[chosen], PHASES),
            "step": self.integers["step"][chosen],
            "forward_op_id": nullable(ids[self.forward[chosen]]),
            "device": text_column(devices[0][chosen], devices[1]),
            "thread": self.thread[chosen],
            "start_us": (self.integers["start"][chosen] - self.recording.start) / 1e3,
            "total_time_us": total[chosen],
            "self_time_us": self.self_time(total)[chosen],
            "source": text_column(self.source_code[chosen], self.sources),
        }
        return OPS.frame(columns)
