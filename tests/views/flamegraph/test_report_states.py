"""What a report's script makes of its data is the flame graph's state as the notebook sends it."""

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.data import State, column
from nbkit.views.flamegraph.difference import TYPES, flame_states
from nbkit.views.flamegraph.panel import payload
from nbkit.views.op_table.report_data import op_data
from tests.analysis.repeated import nested
from tests.support.fakes import fake_trace, make_ops, make_trace, small_trace, timed_trace
from tests.views.report.traces import hostile_trace, whole_times, without_levels

HELPER = Path(__file__).parents[3] / "widgets/test_helpers/flame_states.js"


def in_the_page(folder: Path, trace: Trace, base: Trace | None = None) -> dict[str, Any]:
    """The states as the widget of a page reads them."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    (folder / "flame").write_bytes(payload(flame_states(trace, base), base))
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
def test_the_page_makes_the_states_of_a_trace_and_of_a_base(name: str, tmp_path: Path) -> None:
    trace = TRACES[name]()
    found, states = in_the_page(tmp_path, small_trace(), trace), flame_states(small_trace(), trace)
    for trait in ("flame", "base"):
        same(found[trait], states[trait])
    found = in_the_page(tmp_path, trace)
    same(found["flame"], flame_states(trace, None)["flame"])
    assert (found["base"], found["difference"]) == (None, None)


def same(found: dict[str, Any], state: State | None) -> None:
    """The page's state of a trace is Python's."""
    assert state is not None
    texts = ("title", "count", "complete", "strings", "tracks", "repeats", "notes")
    assert {one: found[one] for one in texts} == {one: state[one] for one in texts}
    assert found["columns"].keys() == state["columns"].keys()
    for one, values in as_lists(state).items():
        # Times are kept to the nanosecond.
        wanted = [None if v is None else pytest.approx(v, abs=5.1e-4, rel=1e-12) for v in values]
        assert found["columns"][one] == wanted, one


def test_memory_is_unpacked(tmp_path: Path) -> None:
    (line,) = in_the_page(tmp_path, timed_trace())["flame"]["memory"]
    assert line == {"device": "cpu", "time": [1.0, 8.0, 50.0], "allocated": [512.0, 2560.0, 512.0]}


def test_repeated_layers_are_unpacked(tmp_path: Path) -> None:
    rows = [{"op": "Block", "model": "Net", "module": f"h.{layer}", "level": "module"} for layer in range(2)]
    found = in_the_page(tmp_path, make_trace(make_ops(*rows)))["flame"]
    assert found["repeats"] == {"Net.h.0": "*", "Net.h.1": "*"}


def test_verdicts_are_unpacked(tmp_path: Path) -> None:
    runs = nested(2, slow="blocks.3", by=1.3), nested(1)
    found, state = in_the_page(tmp_path, *runs)["difference"], flame_states(*runs)["difference"]
    assert state is not None and found["views"].keys() == state["views"].keys() and found["repeats"] == [10, 10]
    for name, view in state["views"].items():
        wanted = {one: np.frombuffer(data, TYPES[one]).tolist() for one, data in view["columns"].items()}
        assert found["views"][name] == wanted and wanted["row"]
