"""Makes the frame `stacks` of lists of stack frames: each call once, however many stacks begin with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from nbkit.readers.chrome.names import is_user_path
from nbkit.readers.snapshot.events import SnapshotError
from nbkit.readers.text_file import encodable
from nbkit.schema import STACKS, TEXT, nullable

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
# Lists whose frames are looked up at once: 30 frames each make 25 MB.
AT_ONCE = 100_000
# Outer calls are kept, inner ones left out, beyond as many in one stack or different ones in all.
MOST_DEPTH, MOST_CALLS = 1_000, 1_500_000
PHASES = ("other", "forward", "backward", "optimizer")
OTHER, FORWARD, BACKWARD, OPTIMIZER = range(4)
MODULE_FILE, MODULE_CALL = "torch/nn/modules/module.py", "_call_impl"
BACKWARD_FILES = ("torch/_tensor.py", "torch/autograd/__init__.py")
ENGINE = "torch::autograd::Engine"
# Folder of the code that torch.compile writes.
COMPILED = "/torchinductor_"


@dataclass(frozen=True)
class Frame:
    """Describes one frame of a stack as it stands in the snapshot."""

    function: str
    source: str | None
    is_python: bool
    is_user: bool
    is_module_call: bool
    phase: int
    file: str


class Stacks:
    """Numbers the calls of all stacks: `stack_id` is the innermost call of each list, -1 for an empty one.

    Lists hold the innermost frame first. `is_cut` says whether calls were left out, as there are too many.
    """

    def __init__(self, lists: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        self.is_cut = False
        # torch has one dict per frame, and one list for all that shares it.
        same, first = pd.factorize(np.fromiter(map(id, lists), np.int64, len(lists)))
        position = np.full(len(first), -1, np.int64)
        position[same[::-1]] = np.arange(len(lists))[::-1]
        different = [lists[index] for index in position.tolist()]
        length = np.fromiter(map(len, different), np.int64, len(different))
        self._frames, codes = _frame_codes(different, length)
        self.stack_id = self._numbered(codes, length)[same]

    def _numbered(self, codes: npt.NDArray[np.int32], length: Ints) -> Ints:
        """Goes from the outermost call inwards, all lists at once; a call is its caller and its frame."""
        end = np.cumsum(length)
        node = np.full(len(length), -1, np.int64)
        parents, frames, count = [], [], 0
        open_rows, depth = np.flatnonzero(length > 0), 0
        while len(open_rows):
            frame = codes[end[open_rows] - 1 - depth]
            same, calls = pd.factorize((node[open_rows] + 1) * max(len(self._frames), 1) + frame)
            if depth >= MOST_DEPTH or count + len(calls) > MOST_CALLS:
                self.is_cut = True
                break
            parents.append(calls // max(len(self._frames), 1) - 1)
            frames.append(calls % max(len(self._frames), 1))
            node[open_rows] = count + same
            count += len(calls)
            depth += 1
            open_rows = open_rows[length[open_rows] > depth]
        self._parent = np.concatenate([np.zeros(0, np.int64), *parents])
        self._frame = np.concatenate([np.zeros(0, np.int64), *frames])
        self._levels = np.cumsum([0, *map(len, parents)])
        return node

    def table(self) -> pd.DataFrame:
        """Returns the frame `stacks`."""
        line, module, phase = self._inherited()
        frames, modules = self._frames, [_module_name(frame) for frame in self._frames]
        return STACKS.frame(
            {
                "stack_id": np.arange(len(self._parent)),
                "parent_id": nullable(self._parent),
                "function": _texts([frame.function for frame in frames], self._frame),
                "source": _texts([frame.source for frame in frames], self._frame),
                "user_line": _texts([frame.source for frame in frames], line),
                "module": _texts(modules, module),
                "phase": _texts(list(PHASES), phase),
            }
        )

    def _inherited(self) -> tuple[Ints, Ints, Ints]:
        """Returns of each call the frames of its line and its module, -1 for none, and its phase."""
        frames, count = self._frames, len(self._parent)
        names = ("is_python", "is_user", "is_module_call")
        is_python, is_user, is_call = (np.array([getattr(one, name) for one in frames], bool) for name in names)
        own_phase = np.array([frame.phase for frame in frames], np.int64)
        line, module, python = (np.full(count + 1, -1, np.int64) for _ in range(3))
        phase = np.zeros(count + 1, np.int64)
        for low, high in zip(self._levels[:-1].tolist(), self._levels[1:].tolist(), strict=True):
            frame, above = self._frame[low:high], self._parent[low:high]  # -1 is the last element
            line[low:high] = np.where(is_user[frame], frame, line[above])
            caller = python[above]
            is_forward = is_python[frame] & (caller >= 0) & is_call[caller]
            module[low:high] = np.where(is_forward, frame, module[above])
            # What runs in the backward pass or the optimizer is no forward pass, though a module may be called there.
            own = np.maximum(own_phase[frame], np.where(is_forward, FORWARD, OTHER))
            phase[low:high] = np.where(phase[above] >= BACKWARD, phase[above], np.maximum(own, phase[above]))
            python[low:high] = np.where(is_python[frame], frame, caller)
        return line[:count], module[:count], phase[:count]


def _frame_codes(
    lists: Sequence[Sequence[Mapping[str, Any]]], length: Ints
) -> tuple[list[Frame], npt.NDArray[np.int32]]:
    """Returns the different frames, and the code of each in all lists, one list after the other."""
    codes = np.zeros(int(length.sum()), np.int32)
    known: dict[tuple[str, str, int], int] = {}
    code_of: dict[int, int] = {}
    start = 0
    for low in range(0, len(lists), AT_ONCE):
        count = int(length[low : low + AT_ONCE].sum())
        flat = list(chain.from_iterable(lists[low : low + AT_ONCE]))
        same, objects = pd.factorize(np.fromiter(map(id, flat), np.int64, count))
        position = np.zeros(len(objects), np.int64)
        position[same[::-1]] = np.arange(count)[::-1]
        for identity, index in zip(objects.tolist(), position.tolist(), strict=True):
            if identity not in code_of:
                code_of[identity] = known.setdefault(_content(flat[index]), len(known))
        numbers = np.array([code_of[identity] for identity in objects.tolist()], np.int32)
        codes[start : start + count] = numbers[same]
        start += count
    return [_frame(*content) for content in known], codes


def _content(frame: Mapping[str, Any]) -> tuple[str, str, int]:
    name, filename, line = frame["name"], frame["filename"], frame["line"]
    if not (isinstance(name, str) and isinstance(filename, str) and isinstance(line, int)):
        raise SnapshotError("it has frames of stacks without a name, a file and a line")
    return encodable(name), encodable(filename), line


def _frame(function: str, filename: str, line: int) -> Frame:
    path = filename.replace("\\", "/")
    is_python = path.endswith(".py") or path.startswith("<")
    source = f"{filename}:{line}" if line > 0 or is_python else None
    phase = OTHER
    if function == "step" and "torch/optim/" in path:
        phase = OPTIMIZER
    elif (function == "backward" and path.endswith(BACKWARD_FILES)) or (not is_python and ENGINE in function):
        phase = BACKWARD
    return Frame(
        function,
        source,
        is_python,
        is_python and is_user_path(path) and COMPILED not in path,
        function.rpartition(".")[2] == MODULE_CALL and path.endswith(MODULE_FILE),
        phase,
        path.rpartition("/")[2].removesuffix(".py"),
    )


def _module_name(frame: Frame) -> str:
    """Returns what a snapshot tells of a module: not its path, and its class only where Python's names have it."""
    owner, _, function = frame.function.rpartition(".")
    return f"{owner.rpartition('.')[2] or frame.file}::{function}"


def _texts(texts: Sequence[str | None], codes: Ints) -> Any:
    """Returns a column of the texts that the codes stand for; -1 is null."""
    index = pa.array(codes, pa.int64(), mask=codes < 0)
    return TEXT.__from_arrow__(pa.array(texts, pa.large_string()).take(index))  # type: ignore[attr-defined]
