"""What is said of the run behind a dump: loss, ranks, memory, passes."""

from typing import Any

import pytest

from nbkit.schema import CORRESPONDENCE, MEMORY_PLAN, METRICS, NODES, PASSES, SETTINGS
from nbkit.trace.trace import Trace
from nbkit.views.statements.recorded import recorded_words
from nbkit.views.statements.run import run_statements

NODE = {"graph": "g", "kind": "op", "name": "n"}


def told(meta: Any = (), **frames: Any) -> dict[str, list[str]]:
    trace = Trace(frames, dict(meta))
    return {one.question: ["".join(map(str, words)) for words in one.sentences] for one in run_statements(trace)}


def losses(*values: float, iterations: str | None = None) -> list[str]:
    rows = [{"step": 20 * at + 19, "name": "total_loss (median)", "value": value} for at, value in enumerate(values)]
    settings = [] if iterations is None else [{"name": "iterations", "text": iterations}]
    said = told(
        metrics=METRICS.frame([*rows, {"step": 19, "name": "lr", "value": 9.0}]), settings=SETTINGS.frame(settings)
    )
    return said.get("How it went", [])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((9.68, 5.0, 0.06), ["The loss falls from 9.68 to 0.06 in iterations 19 to 59."]),
        ((1.0, 2.0), ["The loss rises from 1 to 2 in iterations 19 to 39."]),
        ((2.0, 3.0, 2.0), ["The loss is 2 at both ends in iterations 19 to 59."]),
        ((2.5,), ["The loss is 2.5 in iteration 19."]),
        ((2.0, 1.0, float("nan"), float("inf")),
         ["The loss falls from 2 to 1 in iterations 19 to 39.", "From iteration 59 on it is NaN or Inf."]),
        ((float("nan"), float("nan")), ["The loss is never finite in iterations 19 to 39."]),
        ((), []),
    ],
)  # fmt: skip
def test_how_the_loss_went(values: tuple[float, ...], expected: list[str]) -> None:
    assert losses(*values) == expected


def test_iterations_that_were_planned_are_said() -> None:
    assert losses(9.68, 0.06, iterations="10000") == [
        "The loss falls from 9.68 to 0.06 in iterations 19 to 39 of 10,000."
    ]


def stage(*rows: dict[str, Any], meta: Any = ()) -> list[str]:
    nodes = NODES.frame([{**NODE, "node_id": at, **row} for at, row in enumerate(rows)])
    return told(meta, nodes=nodes).get("Which ranks", [])


def test_a_stage_receives_and_sends_within_rings() -> None:
    receive, send = {"op": "recv_v2", "ring": 32, "peer": 0}, {"op": "send_v2", "ring": 30, "peer": 1}
    reduce = {"op": "c_allreduce_sum", "ring": 0}
    both = "This stage receives from rank 0 of ring 32 and sends to rank 1 of ring 30."
    assert stage(reduce, receive, receive, send) == [both]
    assert stage(receive) == ["This stage receives from rank 0 of ring 32."]
    assert stage(reduce) == ["1 op in 1 ring communicate."]
    assert stage(receive, {**send, "graph": "program 2"}) == ["2 ops in 2 rings communicate."]
    assert stage({"op": "add"}) == []


def test_mesh_sharding_and_world_size_are_told() -> None:
    parallel = {"dimensions": {"dp": 2, "pp": 2}, "ranks": [0, 1, 2, 3], "meshes": []}
    meta = {"paddle": {"parallelism": parallel, "sharding": {"owned": ["a"], "received": {"b": 1, "c": 1}}}}
    assert stage({"mesh": "dp 2: ranks 1, 3"}, {"mesh": "dp 2: ranks 1, 3"}, {"mesh": "all"}, meta=meta) == [
        "The mesh is dp 2, pp 2 over 4 ranks.",
        "Most ops that name a mesh, 2, are for dp 2: ranks 1, 3.",
        "The optimizer is sharded: 1 parameter updated here, 2 received.",
    ]
    world = [{"name": "world_size", "text": text} for text in ("int(os.environ['N'])", "2")]
    assert told(settings=SETTINGS.frame(world)) == {"Which ranks": ["World size 2."]}
    assert told(settings=SETTINGS.frame(world[:1])) == {}


def plan(*rows: tuple[Any, ...]) -> list[str]:
    names = ("graph", "rank", "device", "kind", "size_bytes")
    return told(memory_plan=MEMORY_PLAN.frame([dict(zip(names, row, strict=True)) for row in rows]))["Memory planned"]


def test_memory_of_equal_and_of_different_devices() -> None:
    one = [("g", 0, 0, "total", 2 * 10**6), ("g", 0, 0, "chunk", 2**20), ("g", 1, 1, "total", 2 * 10**6)]
    block = (None, None, 0, "block", 2**20)
    assert plan(*one, block) == [
        "The plan needs 1.91 MiB on each of 2 devices (the log prints 2.00 MiB, of 10^6 bytes each): chunks 1.00 MiB."
    ]
    assert "on the device that needs most" in plan(*one[:2], ("g", 1, 1, "total", 10**6))[0]
    assert "1.91 MiB on one device (" in plan(one[0], one[0])[0]  # a second rank prints it again
    assert "on one device" in plan(("g", None, None, "total", 2 * 10**6))[0]
    assert plan(*one, ("h", 0, 0, "total", 10))[0].startswith("The plan of g needs 1.91 MiB on each of 2 devices")
    assert told(memory_plan=MEMORY_PLAN.frame([{"kind": "block", "size_bytes": 1}])) == {}


def test_passes_and_stages() -> None:
    rows = [{"graph": "g", "name": name, "duration_us": us} for name, us in (("a", 2e6), ("b", 5e5), ("c", None))]
    stages = [{"stage": "building graph", "seconds": 6.0}, {"stage": "building plan", "seconds": None}]
    assert told({"oneflow": {"stages": stages}}, passes=PASSES.frame(rows)) == {
        "How it was compiled": ["3 compiler passes took 2.50 s, the longest a 2.00 s.", "Building graph 6.00 s."]
    }
    assert told(passes=PASSES.frame(rows[2:])) == {"How it was compiled": ["1 compiler pass, of unknown times."]}


def test_the_brief_says_the_run_before_what_the_graph_holds() -> None:
    nodes = NODES.frame([{**NODE, "node_id": 0, "op": "recv_v2", "ring": 3, "peer": 0}])
    passes = PASSES.frame([{"graph": "g", "name": "a", "duration_us": 1.0}])
    assert recorded_words(Trace({"nodes": nodes, "passes": passes}, {})) == [
        ("This stage receives from rank 0 of ring 3.",),
        ("1 op.",),
    ]
    compared = {"nodes": nodes, "correspondence": CORRESPONDENCE.frame()}
    assert recorded_words(Trace(compared, {})) == [("1 op.",)]
