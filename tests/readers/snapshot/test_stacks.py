"""Stacks of a snapshot: each call once, with its line outside torch, its module and its phase."""

from typing import Any

import pytest
import torch
from torch import nn

import nbkit
from nbkit.readers.snapshot import stacks as reader
from nbkit.readers.snapshot.stacks import SnapshotError, Stacks
from tests.support.snapshots import Allocator, OnAllocator, snapshot_of

TORCH = "/env/lib/python3.11/site-packages/torch/"
CALL = {"name": "_call_impl", "filename": f"{TORCH}nn/modules/module.py", "line": 1789}
NATIVE = {"name": "at::empty", "filename": "??", "line": 0}


def frame(name: str, filename: str = "/Users/me/train.py", line: int = 1) -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": line}


def chain(table: Any, stack_id: int, column: str = "function") -> list[Any]:
    """Returns a column of a stack from the innermost call outwards."""
    values = []
    while stack_id >= 0:
        row = table.iloc[stack_id]
        values.append(row[column])
        stack_id = -1 if row.isna()["parent_id"] else int(row["parent_id"])
    return values


def test_stacks_share_the_calls_that_they_begin_with():
    main, step = frame("<module>"), frame("step", line=3)
    made = Stacks(
        [[frame("a"), step, main], [], [frame("b"), step, main], [step, main], [frame("a"), dict(step), main]]
    )
    table = made.table()
    assert table["function"].tolist() == ["<module>", "step", "a", "b"]
    assert made.stack_id.tolist() == [2, -1, 3, 1, 2]
    assert chain(table, 2) == ["a", "step", "<module>"]


def test_the_line_is_the_innermost_outside_torch_and_the_module_what_its_call_tells():
    linear = frame("forward", f"{TORCH}nn/modules/linear.py", 125)
    lists = [
        [NATIVE, linear, CALL, frame("forward", "/Users/me/model.py", 5), NATIVE, CALL, frame("main")],
        [frame("Block.forward", "/Users/me/model.py", 8), CALL, frame("main")],
        [frame("forward"), frame("main")],
    ]
    made = Stacks(lists)
    rows = made.table().iloc[made.stack_id]
    assert rows["user_line"].tolist() == ["/Users/me/model.py:5", "/Users/me/model.py:8", "/Users/me/train.py:1"]
    assert rows["module"].fillna("").tolist() == ["linear::forward", "Block::forward", ""]
    assert rows["phase"].tolist() == ["forward", "forward", "other"]
    assert rows["source"].fillna("").tolist()[0] == ""


def test_cells_are_lines_of_the_user_and_compiled_code_is_not():
    cell, compiled = (
        frame("<module>", "<ipython-input-3-0a1b>", 4),
        frame("call", "/var/torchinductor_me/ab/cab.py", 90),
    )
    made = Stacks([[compiled, cell], [frame("run", "<frozen runpy>", 3)]])
    assert made.table().iloc[made.stack_id]["user_line"].fillna("").tolist() == ["<ipython-input-3-0a1b>:4", ""]


def test_what_a_checkpoint_runs_again_is_backward():
    again = [frame("forward", "/Users/me/model.py"), CALL, frame("backward", f"{TORCH}_tensor.py"), frame("main")]
    engine = [NATIVE, {**NATIVE, "name": "torch::autograd::Engine::thread_main(std::shared_ptr<...>)"}]
    optimizer = [frame("_init_group", f"{TORCH}optim/adamw.py"), frame("step", f"{TORCH}optim/adamw.py"), frame("step")]
    made = Stacks([again, engine, optimizer])
    assert made.table().iloc[made.stack_id]["phase"].tolist() == ["backward", "backward", "optimizer"]


def test_stacks_of_torch_itself_are_read(dumped):
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x).relu()

    allocator, model, x = Allocator(), Block(), torch.randn(2, 4)
    with OnAllocator(allocator):
        model(x).sum().backward()
    trace = nbkit.load(dumped(snapshot_of(allocator)))
    made = trace.memory[trace.memory["delta_bytes"] > 0]
    rows = trace.stacks.iloc[made["stack_id"].to_numpy(int)]
    assert all("test_stacks.py" in line for line in rows["user_line"])
    forward = rows["phase"] == "forward"
    assert rows.loc[forward, "module"].unique().tolist() == ["linear::forward", "test_stacks::forward"]
    assert set(rows["phase"]) == {"forward", "other", "backward"}


def test_a_snapshot_has_the_stacks_that_torch_symbolized(dumped):
    allocator = Allocator()
    with OnAllocator(allocator):
        kept = [torch.ones(3), nn.Linear(2, 2)(torch.ones(1, 2))]
    snapshot = snapshot_of(allocator)
    expected = [
        [(one["name"], f"{one['filename']}:{one['line']}") for one in event["frames"]]
        for event in snapshot["device_traces"][0] if event["action"] in ("alloc", "free_requested")
    ]  # fmt: skip
    trace = nbkit.load(dumped(snapshot))
    ids = trace.memory["stack_id"].tolist()
    found = [list(zip(chain(trace.stacks, i), chain(trace.stacks, i, "source"), strict=True)) for i in ids]
    assert found == expected and kept


def test_endless_stacks_are_cut_and_that_is_told(dumped, monkeypatch):
    monkeypatch.setattr(reader, "MOST_DEPTH", 5)
    allocator = Allocator()
    allocator.alloc(10, [frame(f"f{depth}") for depth in range(20)])
    trace = nbkit.load(dumped(snapshot_of(allocator)))
    assert trace.stacks["function"].tolist() == ["f19", "f18", "f17", "f16", "f15"]
    assert "too many different stacks" in trace.meta["notes"][0]


@pytest.mark.parametrize("wrong", [{"name": None}, {"filename": 3}, {"line": "3"}])
def test_frames_that_are_none_are_refused(wrong):
    with pytest.raises(SnapshotError, match="it has frames of stacks without a name, a file and a line"):
        Stacks([[frame("a")], [frame("b") | wrong]])
