"""Joins the frames of two flame graphs in one tree per grouping, as the widget groups them, to judge them here.

The widget makes its frames itself, of any trace and without a kernel (groups.js, merge.js); those of a difference are
made here too, of the same state, as the statistics of repeats are. A browser test holds both to the same frames.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nbkit.timeline.nesting import depths
from nbkit.views.flamegraph.data import State, column
from nbkit.views.flamegraph.merged_calls import merged_calls

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
# What stands on each level of a grouping.
LEVELS = {"module": ("module", "phase", "op"), "op": ("op", "phase", "module path"), "phase": ("phase", "module", "op")}
GROUPS = ("none", *LEVELS)
Names = dict[str, tuple[Ints, list[str]]]


@dataclass(frozen=True)
class FlameTree:
    """Holds the frames of two traces: each one's parent (a smaller number, -1 at the top), text, and each row's frame.

    `frame_of` is per trace, that of now first, and -1 for rows of a device.
    """

    parent: Ints
    texts: list[str]
    frame_of: tuple[Ints, Ints]

    def rows_within(self) -> tuple[Ints, Ints]:
        """Returns for each frame a row of now inside it, and how much deeper that row's own frame is; -1 for none."""
        depth, frames = depths(self.parent), self.frame_of[0]
        none = len(frames)
        first = np.full(len(self.parent), none, np.int64)
        rows = np.flatnonzero(frames >= 0)
        np.minimum.at(first, frames[rows], rows)
        for frame in reversed(range(len(first))):
            above = self.parent[frame]
            if above >= 0:
                first[above] = min(first[above], first[frame])
        is_there = first < none
        row = np.where(is_there, first, -1)
        return row, np.where(is_there, depth[np.append(frames, -1)[row]] - depth, -1)


def flame_tree(now: State, base: State, group: str) -> FlameTree:
    """Returns the frames of both states: merged calls for the group none, else those by module, op or phase."""
    names = {name: _joined(now, base, name) for name in ("op", "module", "phase", "level")}
    is_host = np.concatenate([host_rows(state) for state in (now, base)])
    rows = np.flatnonzero(is_host)
    frames, parent, texts = _calls(now, base, names, rows) if group == "none" else _grouped(names, rows, LEVELS[group])
    frame_of = np.full(len(is_host), -1, np.int64)
    frame_of[rows] = frames
    return FlameTree(parent, texts, (frame_of[: now["count"]], frame_of[now["count"] :]))


def host_rows(state: State) -> Bools:
    """Tells which rows ran on the host."""
    kinds = np.array([track["kind"] == "host" for track in state["tracks"]], bool)
    is_host: Bools = kinds[column(state, "track")]
    return is_host


def _joined(now: State, base: State, name: str) -> tuple[Ints, list[str]]:
    """Returns a code for each row of both states, -1 for missing, and the texts of the codes."""
    texts = list(dict.fromkeys([*now["strings"][name], *base["strings"][name]]))
    code_of = {text: code for code, text in enumerate(texts)}
    # The last one is what -1 points at.
    codes = [
        np.array([*(code_of[text] for text in state["strings"][name]), -1], np.int64)[column(state, name)]
        for state in (now, base)
    ]
    return np.concatenate(codes), texts


def _calls(now: State, base: State, names: Names, rows: Ints) -> tuple[Ints, Ints, list[str]]:
    """Returns each row's frame, each frame's parent and text; forward calls of modules are told apart by path."""
    (op, ops), (module, modules), (level, levels) = (names[name] for name in ("op", "module", "level"))
    module_level = levels.index("module") if "module" in levels else -2
    kinds = np.where((level == module_level) & (module >= 0), (module + 1) * len(ops) + op, op)[rows]
    first, second = (column(state, "parent").astype(np.int64) for state in (now, base))
    parent = np.concatenate([first, np.where(second < 0, -1, second + len(first))])
    position = np.full(len(parent) + 1, -1, np.int64)
    position[rows] = np.arange(len(rows))
    frames, above = merged_calls(position[parent[rows]], kinds)
    kind_of = np.zeros(len(above), np.int64)
    kind_of[frames] = kinds
    return frames, above, [_call_text(*divmod(int(kind), len(ops)), ops, modules) for kind in kind_of]


def _call_text(module: int, op: int, ops: list[str], modules: list[str]) -> str:
    path = modules[module - 1] if module else ""
    return f"{path} ({ops[op]})" if path else ops[op]


def _grouped(names: Names, rows: Ints, levels: tuple[str, ...]) -> tuple[Ints, Ints, list[str]]:
    """Returns each row's frame, each frame's parent and text; there is one frame for each step of a row's path."""
    (op, ops), (module, modules), (phase, phases) = (names[name] for name in ("op", "module", "phase"))
    keys = ((module[rows] + 1) * len(phases) + phase[rows]) * len(ops) + op[rows]
    leaves, leaf_of = np.unique(keys, return_inverse=True)
    known: dict[tuple[int, str, str], int] = {}
    frames = np.zeros(len(leaves), np.int64)
    for index, leaf in enumerate(leaves.tolist()):
        at, op_code = divmod(leaf, len(ops))
        module_code, phase_code = divmod(at, len(phases))
        path = modules[module_code - 1] if module_code else None
        frame = -1
        for step in _steps(levels, ops[op_code], phases[phase_code], path):
            frame = known.setdefault((frame, *step), len(known))
        frames[index] = frame
    return frames[leaf_of], np.array([above for above, _, _ in known], np.int64), [text for _, _, text in known]


def _steps(levels: tuple[str, ...], op: str, phase: str, module: str | None) -> list[tuple[str, str]]:
    """Returns the kind and text of each frame down to a leaf."""
    steps: list[tuple[str, str]] = []
    whole = "outside modules" if module is None else module or "root module"
    parts = (module or "").split(".")
    paths = [".".join(parts[: depth + 1]) for depth in range(len(parts))]
    for level in levels:
        if level in ("op", "phase"):
            steps.append((level, op if level == "op" else phase))
        elif level == "module path" or not module:
            steps.append(("module", whole))
        else:
            steps += [("module", path) for path in paths]
    return steps
