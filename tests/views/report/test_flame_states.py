"""What a report's script unpacks is the flamegraph's state as the notebook sends it."""

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nbkit.trace import Trace
from nbkit.views.flame_data import State, column, flame_state
from nbkit.views.report.flame_payload import payload
from tests.fakes import fake_trace, make_ops, make_trace, timed_trace

HELPER = Path(__file__).parents[3] / "widgets/test_helpers/flame_states.js"


def unpacked(state: State, folder: Path) -> dict[str, Any]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    file = folder / "block"
    file.write_bytes(payload({"flame": state}))
    done = subprocess.run([node, str(HELPER), str(file)], capture_output=True, encoding="utf-8", check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def as_lists(state: State) -> dict[str, list[float | None]]:
    columns = {name: column(state, name).tolist() for name in state["columns"]}
    return {name: [None if math.isnan(v) else v for v in values] for name, values in columns.items()}


@pytest.mark.parametrize(
    "trace", [timed_trace(), fake_trace(3_000), make_trace(make_ops())], ids=["small", "big", "no ops"]
)
def test_the_page_unpacks_what_python_packed(trace: Trace, tmp_path: Path) -> None:
    state = flame_state(trace)
    found = unpacked(state, tmp_path)
    assert {name: found[name] for name in ("title", "count", "complete", "strings", "tracks", "notes")} == {
        name: state[name] for name in ("title", "count", "complete", "strings", "tracks", "notes")
    }
    assert found["columns"].keys() == state["columns"].keys()
    for name, values in as_lists(state).items():
        # Times are kept to the nanosecond.
        assert found["columns"][name] == [None if v is None else pytest.approx(v, abs=5e-4) for v in values], name


def test_memory_is_unpacked(tmp_path: Path) -> None:
    (line,) = unpacked(flame_state(timed_trace()), tmp_path)["memory"]
    assert line == {"device": "cpu", "time": [1.0, 8.0, 50.0], "allocated": [512.0, 2560.0, 512.0]}
