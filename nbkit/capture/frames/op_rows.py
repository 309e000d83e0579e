"""Builds the ops frame from the raw record: in call order, linked to parents, forward ops, modules and source lines."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.frames.op_names import op_name
from nbkit.capture.frames.string_columns import followed, numbered, text_column
from nbkit.capture.raw.recording import (
    ACCUMULATE,
    OP_INTEGERS,
    OPTIMIZER_CODE,
    CodedTexts,
    Context,
    ModuleCall,
    OpPlaces,
    Recording,
    ThreadState,
)
from nbkit.capture.raw.source import CodeLocation, code_of_line, line_of, line_text
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.schema import LINES, OPS, nullable
from nbkit.schema.recording import RAISED
from nbkit.timeline.nesting import depth_levels, subtree_sums

LEVELS = ["api", "aten"]
PHASES = ["forward", "backward", "optimizer", "other"]
FORWARD, BACKWARD, OPTIMIZER, OTHER = range(4)
BACKWARD_CALLS = frozenset({"torch.Tensor.backward", "torch.autograd.backward", "torch.autograd.grad"})


class OpRows:
    """Holds the kept rows of a recording as arrays; frame() is the result, the rest is for the tensor rows too."""

    def __init__(self, recording: Recording, modules: ModuleCalls) -> None:
        self.recording = recording
        self.modules = modules
        self.name_code, functions = recording.ops.objects("name")
        self.is_done: np.ndarray | None = None
        rows = self.row_of_slot = np.arange(len(self.name_code))
        if None in functions:  # a call that had not ended when the recording did
            is_done = self.is_done = self.name_code != functions.index(None)
            self.name_code, functions = self.objects("name")
            rows = np.cumsum(is_done) - 1
            self.row_of_slot = np.where(is_done, rows, -1)
        self.count = len(self.name_code)
        done = slice(None) if self.is_done is None else self.is_done
        self.integers = {name: recording.ops.integers(name)[done] for name in OP_INTEGERS}
        context, contexts = self.objects("context")
        fields = np.array(contexts, dtype=np.int64).reshape(-1, len(Context._fields))
        self.integers |= {name: fields[context, number] for number, name in enumerate(Context._fields)}
        parent = self.integers["parent"]
        self.parent = np.where(parent >= 0, rows[parent], -1) if len(rows) else parent
        self.is_api = self.integers["first_tensor"] < 0
        self.has_raised = self.integers["outputs"] < 0
        self.integers["outputs"] = np.maximum(self.integers["outputs"], 0)
        failed = recording.failed_slot
        self.failed = int(rows[failed]) if failed is not None and failed < len(rows) else -1
        self.thread = self.integers["thread"]
        self.names = [op_name(function) for function in functions]
        self.node_type, self.node_types = self.objects("node_type")
        self.in_node = ~self.is_api & ~self._has_node_type(lambda kind: kind is None)
        self.accumulates = self.in_node & self._has_node_type(lambda kind: kind is ACCUMULATE)
        self.made_node = self._made_node()
        self.forward = self._forward()
        self.calls = np.array(self.recording.module_calls, dtype=np.int64).reshape(-1, len(ModuleCall._fields))
        self.rerun = self._rerun()
        self.root, self.module, self.call = self._modules()
        self.source_code, self.own_code, self.sources = self._sources()
        self.arguments_code, self.arguments = self.objects("arguments")
        self.drop_empty_calls()

    def objects(self, field: str) -> tuple[np.ndarray, list[Any]]:
        """Returns the number of each row's object, and the objects."""
        numbers, distinct = self.recording.ops.objects(field)
        if self.is_done is None:
            return numbers, distinct
        met, numbers = np.unique(numbers[self.is_done], return_inverse=True)
        return numbers, [distinct[number] for number in met]

    def drop_empty_calls(self) -> None:
        """Leaves out, and counts, API calls that ran no op and returned no tensor (x.size(), torch.is_complex(x))."""
        is_parent = np.zeros(self.count, dtype=bool)
        is_parent[self.parent[self.parent >= 0]] = True
        self.keep = ~self.is_api | is_parent | self._has_node_type(lambda kind: kind is True)
        self.empty_calls = int((~self.keep).sum())

    def _has_node_type(self, fits: Callable[[Any], bool]) -> np.ndarray:
        """Returns whether the node_type of each row fits."""
        answers: np.ndarray = np.array([fits(kind) for kind in self.node_types], dtype=bool)[self.node_type]
        return answers

    def _made_node(self) -> np.ndarray:
        """Returns whether autograd made a node for the op: its counter moved on since the op before, in that thread.

        Where the counter was read before each op: until the op after. The ops around it have made the node, too.
        """
        made = np.zeros(self.count, dtype=bool)
        is_before = self.recording.sequence_read == "before"
        for thread in self.recording.threads:
            rows = np.flatnonzero((self.thread == thread.number) & ~self.is_api)
            readings = self.integers["sequence"][rows]
            if is_before:
                last = self.recording.last_sequence if thread is self.recording.main else readings[-1:]
                made[rows] = np.diff(readings, append=last) > 0
            else:
                made[rows] = np.diff(readings, prepend=thread.first_sequence if thread.is_of_user else readings[:1]) > 0
        if is_before:
            parent = np.where(self.is_api[self.parent], -1, self.parent)
            return subtree_sums(parent, depth_levels(parent), made.astype(np.int64)) > 0
        clones, writes = self._captured_originals()
        made[writes[made[clones]]] = True
        return made

    def _captured_originals(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns rows of clones right before an in-place op, with no node made in between, and of those ops.

        Autograd makes the node of an in-place op, then clones what the op overwrites if the gradient needs it, then
        runs the op: the node belongs to the second. The node of a clone itself runs no ops.
        """
        packets = [name.split(".")[1] if name.startswith("aten.") else "" for name in self.names]
        is_clone = np.array([packet == "clone" for packet in packets], dtype=bool)
        is_write = np.array([packet.endswith("_") and not packet.endswith("__") for packet in packets], dtype=bool)
        rows = np.flatnonzero(~self.is_api & (self.thread == 0))
        readings = self.integers["sequence"][rows]
        first, second = rows[:-1], rows[1:]
        pairs = is_clone[self.name_code[first]] & is_write[self.name_code[second]] & (np.diff(readings) == 0)
        return first[pairs], second[pairs]

    def _forward(self) -> np.ndarray:
        """Returns the row of the forward op of every op that an autograd node ran; -1 for others.

        Each thread numbers its nodes anew. Autograd's threads for a device run nodes of the main thread.
        """
        forward = np.full(self.count, -1, dtype=np.int64)
        rows = np.flatnonzero(self.in_node & ~self.accumulates)
        is_of_user = np.array([thread.is_of_user for thread in self.recording.threads], dtype=bool)
        made_in = np.where(is_of_user[self.thread[rows]], self.thread[rows], 0)
        for thread in self.recording.threads:
            mine = rows[made_in == thread.number]
            if len(mine):
                found = self._forward_in(thread, mine)
                forward[mine] = np.where(found < mine, found, -1)
        return forward

    def _forward_in(self, thread: ThreadState, rows: np.ndarray) -> np.ndarray:
        """Returns the same for `rows`, whose nodes a thread made."""
        nodes = self.integers["node"][rows]
        candidates = np.flatnonzero(~self.is_api & (self.thread == thread.number))
        sequences = self.integers["sequence"][candidates]
        if self.recording.sequence_read == "before":  # the last that began at the number of the node
            last = np.searchsorted(sequences, nodes, "right") - 1
            is_met = (last >= 0) & (sequences[last] == nodes)
            return np.where(is_met, candidates[last], -1)
        slices = self._has_node_type(lambda kind: getattr(kind, "__name__", "") == "CopySlices")[rows]
        slices &= self.recording.sequence_read == "within"
        found = forward_ops(nodes, slices, sequences, candidates, thread.first_sequence)
        clones, writes = self._captured_originals()
        shift = np.arange(self.count + 1)  # the last entry answers for -1
        shift[clones], shift[-1] = writes, -1
        shifted: np.ndarray = shift[found]
        return shifted

    def _rerun(self) -> np.ndarray:
        """Returns which rows stand in a module that is run again for the backward pass."""
        call = self.integers["module_call"]
        rerun = np.zeros(self.count, dtype=bool)
        rerun[call >= 0] = self.calls[call[call >= 0], 2] > 0
        return rerun

    def _modules(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns root number, module number and call number of each row; -1 outside any module."""
        calls = self.calls
        roots = np.array([module.root for module in self.modules.called], dtype=np.int64)
        call = self.integers["module_call"].copy()
        # A backward op belongs where its forward op ran; a part that is run again for the backward pass to itself.
        inherits = self.in_node & ~self.rerun
        call[inherits] = -1
        call = call[followed(np.where(inherits & (self.forward >= 0), self.forward, np.arange(self.count)))]
        inside = call >= 0
        module, number, root = (np.full(self.count, -1, dtype=np.int64) for _ in range(3))
        module[inside], number[inside] = calls[call[inside], 0], calls[call[inside], 1]
        root[inside] = roots[module[inside]]
        return root, module, number

    def _sources(self) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Returns each row's source line as a number (its own, else its forward op's or API call's), and the texts.

        Beside it where the source is a library's the line of the user's own code that led there, else -1.
        """
        met, locations = self.objects("location")
        above = [location[2] if location and len(location) == 3 else None for location in locations]
        numbers = self._numbered_places([*(location and location[:2] for location in locations), *above])
        code, own = (of_location[met] for of_location in np.split(numbers, 2))
        upward = np.where(self.in_node & (self.forward >= 0), self.forward, self.parent)
        stays = (code >= 0) | (upward < 0)
        rows = followed(np.where(stays, np.arange(self.count), upward))
        return code[rows], own[rows], [line_text(*place) for place in self.places]

    def _numbered_places(self, locations: list[CodeLocation | None]) -> np.ndarray:
        """Returns the number of each place, -1 for none, and keeps the places: files and lines."""
        # By identity: comparing code objects compares all that is in them.
        by_key = {(id(location[0]), location[1]): location for location in filter(None, locations)}
        number, keys = numbered([(id(code), offset) for code, offset in filter(None, locations)])
        self.places = [(held.co_filename, line_of(held, offset)) for held, offset in map(by_key.__getitem__, keys)]
        numbers = np.full(len(locations), -1, dtype=np.int64)
        numbers[[location is not None for location in locations]] = number
        return numbers

    def lines(self, chosen: np.ndarray) -> pd.DataFrame:
        """Returns the frame of the lines of code that the rows in `chosen` come from; a line stands in it once."""
        met = dict.fromkeys([*self.source_code[chosen].tolist(), *self.own_code[chosen].tolist()])
        texts = {self.sources[code]: code_of_line(*self.places[code]) for code in met if code >= 0}
        return LINES.frame({"source": [*texts], "text": [*texts.values()]})

    def own(self, accumulated: dict[int, tuple[int, str]], paths: list[tuple[int, str]]) -> None:
        """Gives the ops that add to a parameter's gradient the module that owns the parameter.

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
        """Returns the phase of each row, as an index into PHASES."""
        in_module = self.integers["module_call"] >= 0
        phase = np.where(in_module, FORWARD, OTHER)
        phase[self.made_node] = FORWARD
        phase[self.integers["code"] == OPTIMIZER_CODE] = OPTIMIZER
        phase[self.in_node] = BACKWARD
        calls = np.array(self.recording.module_calls, dtype=np.int64).reshape(-1, len(ModuleCall._fields))
        own_call = self.integers["module_call"]
        phase[in_module & (calls[own_call, 2] > 0 if len(calls) else False)] = BACKWARD
        backward_code = [code for code, name in enumerate(self.names) if name in BACKWARD_CALLS]
        starts = self.is_api & np.isin(self.name_code, backward_code)
        phase[starts | ((self.parent >= 0) & starts[self.parent])] = BACKWARD
        # An API call outside modules is what its ops are: walk up from the last child to the first.
        loose = self.is_api & (phase == OTHER)
        rows = np.flatnonzero((self.parent >= 0) & (phase != OTHER) & loose[self.parent])[::-1]
        phase[self.parent[rows]] = phase[rows]
        # What a forward call does besides (it saves a detached result, say) is part of it; so is what an op calls.
        is_known = (phase != OTHER) | (self.parent < 0)
        phase[:] = phase[followed(np.where(is_known, np.arange(self.count), self.parent))]
        return phase

    def leave_out(self, spans: np.ndarray) -> None:
        """Takes these spans (ns, one after the other) out of the time: what comes after them moves up."""
        for edge in ("start", "end"):
            self.integers[edge] = without_spans(self.integers[edge], spans)

    def self_time(self, total: np.ndarray) -> np.ndarray:
        below = self.parent >= 0
        children = np.bincount(self.parent[below], weights=total[below], minlength=self.count)
        return total - children[: self.count]

    def frame(
        self, chosen: np.ndarray, labels: list[str], places: OpPlaces, devices: CodedTexts, shapes: CodedTexts
    ) -> pd.DataFrame:
        """Returns the ops frame of the rows in `chosen`, ids dense; `places` are those of row_places()."""
        ids = np.full(self.count + 1, -1, dtype=np.int64)  # the last entry answers for -1
        ids[chosen] = np.arange(len(chosen))
        total = (self.integers["end"] - self.integers["start"]) / 1e3
        columns = {
            "op_id": ids[chosen],
            "parent_id": nullable(ids[self.parent[chosen]]),
            "level": text_column(1 - self.is_api[chosen].astype(np.int64), LEVELS),
            "op": text_column(*places["op"]),
            "model": text_column(self.root[chosen], labels),
            "module": text_column(*places["module"]),
            "module_call": nullable(self.call[chosen]),
            "phase": text_column(*places["phase"]),
            "step": self.integers["step"][chosen],
            "forward_op_id": nullable(ids[self.forward[chosen]]),
            "device": text_column(devices[0][chosen], devices[1]),
            "thread": self.thread[chosen],
            "start_us": (self.integers["start"][chosen] - self.recording.start) / 1e3,
            "total_time_us": total[chosen],
            "self_time_us": self.self_time(total)[chosen],
            "status": text_column(self.has_raised[chosen] - 1, [RAISED]),
            "input_shapes": text_column(shapes[0][chosen], shapes[1]),
            "arguments": text_column(self.arguments_code[chosen], [given and given.text for given in self.arguments]),
            "source": text_column(*places["source"]),
            "own_source": text_column(*places["own_source"]),
        }
        return OPS.frame(columns)


def without_spans(times: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Returns times (ns) as if these spans, one after the other, had not been."""
    total = np.concatenate(([0], np.cumsum(spans[:, 1] - spans[:, 0])))
    moved: np.ndarray = times - total[np.searchsorted(spans[:, 0], times)]
    return moved


def forward_ops(
    nodes: np.ndarray, copies_slices: np.ndarray, sequences: np.ndarray, forward: np.ndarray, first: int
) -> np.ndarray:
    """Returns the row of the forward op of each autograd node, -1 where the node is older than the recording.

    torch's counter gives every node a number when it is made, and a node is made right before its op is dispatched: the
    op's reading of the counter is one more. So the op of node n is the first whose reading exceeds n. The one kind made
    after its op, on an in-place write through a view, is CopySlices: there it is the last op whose reading does not.
    Source: torch/csrc/autograd/function.h (sequence_nr), torch/csrc/autograd/variable.cpp (rebase_history).

    `sequences` are the readings of the ops in rows `forward`, both in call order; `first` is the reading at the start.
    """
    match = np.where(
        copies_slices, np.searchsorted(sequences, nodes, "right") - 1, np.searchsorted(sequences, nodes, "right")
    )
    valid = (nodes >= first) & (match >= 0) & (match < len(sequences))
    rows = np.full(len(nodes), -1, dtype=np.int64)
    rows[valid] = forward[match[valid]]
    return rows
