"""The tables of the run behind a dump."""

from typing import Any

from nbkit.schema import CORRESPONDENCE, MEMORY_PLAN, NODES, PASSES, SETTINGS
from nbkit.trace.trace import Trace
from nbkit.views.sections.graph.run import run_sections

NODE = {"graph": "g", "kind": "op", "name": "n"}


def tables(count: int = 9, **frames: Any) -> dict[str, list[list[str | None]]]:
    return {section.title: section.texts() for section in run_sections(Trace(frames, {}), count)}


def nodes(*rows: dict[str, Any]) -> Any:
    return NODES.frame([{**NODE, "node_id": at, **row} for at, row in enumerate(rows)])


def test_the_plan_without_its_blocks_and_the_slowest_passes() -> None:
    plan = [
        {"graph": "g", "rank": 0, "device": 1, "kind": "total", "size_bytes": 2**20},
        {"kind": "block", "size_bytes": 1},
    ]
    passes = [{"graph": "g", "name": name, "duration_us": us} for name, us in (("a", None), ("b", 1.0), ("c", 2e6))]
    assert tables(2, memory_plan=MEMORY_PLAN.frame(plan), passes=PASSES.frame(passes)) == {
        "Memory plan": [["g", "0", "1", "total", "1.00 MiB", None]],
        "Compiler passes": [["c", "2.00 s"], ["b", "1.00 µs"]],
    }


def test_short_settings_stand_first() -> None:
    rows = [
        {"name": "optim", "text": "LazyCall(Adam)(lr=1)", "line": 3},
        {"name": "world_size", "text": "2", "line": 9},
    ]
    found = tables(settings=SETTINGS.frame([*rows, {"name": "x", "text": None}]))["Settings"]
    assert found == [["world_size", "2", "9"], ["optim", "LazyCall(Adam)(lr=1)", "3"], ["x", None, None]]


def test_rings_meshes_sbp_and_placements() -> None:
    send = {"op": "send_v2", "ring": 30, "peer": 1, "mesh": "ranks 0, 1"}
    assert tables(nodes=nodes(send, send, {"op": "c_allreduce_sum", "ring": 0, "device": "cpu"})) == {
        "Communication": [["send_v2", "30", "1", "2"], ["c_allreduce_sum", "0", None, "1"]],
        "Meshes": [["ranks 0, 1", "2"]],
    }
    assert tables(nodes=nodes({"sbp": "B", "device": "cuda [0, 1]"}, {"sbp": "B"})) == {
        "SBP of results": [["B", "2"]],
        "Placements": [["cuda [0, 1]", "1"]],
    }
    assert tables(nodes=nodes({"sbp": "B"}), correspondence=CORRESPONDENCE.frame()) == {}
    assert tables() == {}
