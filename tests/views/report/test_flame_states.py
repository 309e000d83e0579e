"""What a report's script makes of its data is the flamegraph's state as the notebook sends it."""

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nbkit.trace import Trace
from nbkit.views.flame_data import State, column, flame_state
from nbkit.views.report.flame_payload import beside_ops, payload
from nbkit.views.report.op_data import op_data
from tests.fakes import fake_trace, make_ops, make_trace, small_trace, timed_trace
from tests.views.report.traces import hostile_trace, whole_times, without_levels

HELPER = Path(__file__).parents[3] / "widgets/test_helpers/flame_states.js"


def unpacked(state: State, trace: Trace, folder: Path) -> dict[str, Any]:
    """The state that the page makes of a packed one and the op table of its trace."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    (folder / "flame").write_bytes(payload({"flame": state}))
    (folder / "ops").write_bytes(op_data(trace))
    command = [node, str(HELPER), str(folder / "flame"), str(folder / "ops")]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def as_lists(state: State) -> dict[str, list[float | None]]:
    columns = {name: column(state, name).tolist() for name in state["columns"]}
    return {name: [None if math.isnan(v) else v for v in values] for name, values in columns.items()}


TRACES: dict[str, Callable[[], Trace]] = {
    "small": small_trace,
    "timed": timed_trace,
    "big": lambda: fake_trace(3_000),
    "no ops": lambda: make_trace(make_ops()),
    "hostile": hostile_trace,
    "whole times": whole_times,
    "names missing": without_levels,
}


@pytest.mark.parametrize("name", TRACES)
def test_the_page_makes_the_state_of_what_the_op_table_has(name: str, tmp_path: Path) -> None:
    check(TRACES[name](), beside_ops, tmp_path)


@pytest.mark.parametrize("name", ["small", "timed", "big", "no ops", "names missing"])
def test_the_page_unpacks_a_base_which_has_no_op_table(name: str, tmp_path: Path) -> None:
    check(TRACES[name](), lambda state: state, tmp_path)


def check(trace: Trace, pack: Callable[[State], State], folder: Path) -> None:
    """The page's state of the trace is Python's."""
    state = flame_state(trace)
    found = unpacked(pack(state), trace, folder)
    same = ("title", "count", "complete", "strings", "tracks", "notes")
    assert {one: found[one] for one in same} == {one: state[one] for one in same}
    assert found["columns"].keys() == state["columns"].keys()
    for one, values in as_lists(state).items():
        # Times are kept to the nanosecond.
        wanted = [None if v is None else pytest.approx(v, abs=5.1e-4, rel=1e-12) for v in values]
        assert found["columns"][one] == wanted, one


def test_memory_is_unpacked(tmp_path: Path) -> None:
    (line,) = unpacked(beside_ops(flame_state(timed_trace())), timed_trace(), tmp_path)["memory"]
    assert line == {"device": "cpu", "time": [1.0, 8.0, 50.0], "allocated": [512.0, 2560.0, 512.0]}
