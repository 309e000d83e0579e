"""What the flame graph of a report is drawn from beside the op table."""

from collections.abc import Mapping
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.difference import flame_states
from nbkit.views.flamegraph.panel import payload
from tests.analysis.repeated import nested
from tests.support.fakes import fake_trace, make_ops, make_trace, timed_trace
from tests.views.panels.test_pack import unpacked


def header_of(trace: Trace, base: Trace | None = None) -> Any:
    return unpacked(payload(flame_states(trace, base), base))[0]


def test_of_a_trace_it_holds_what_does_not_follow_from_its_ops() -> None:
    flame = header_of(timed_trace())["flame"]
    assert (flame["title"], flame["count"], "columns" in flame, "strings" in flame) == ("optime", 9, False, False)
    assert columns(flame) == {"track": ("codes", 9), "memory time": ("steps", 3), "memory allocated": ("steps", 3)}


def columns(flame: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    (line,) = flame["memory"]
    packed = {"track": flame["track"], "memory time": line["time"], "memory allocated": line["allocated"]}
    return {name: (one["way"], one["count"]) for name, one in packed.items()}


def test_null_states_stay_null() -> None:
    header = header_of(timed_trace())
    assert (header["base"], header["difference"]) == (None, None)


def test_of_a_base_it_holds_the_ops_but_for_what_the_flamegraph_has_no_use_for() -> None:
    ops = header_of(timed_trace(), timed_trace())["base"]["ops"]
    assert ops["count"] == 9
    assert sorted(ops["texts"]) == ["device", "input_shapes", "level", "model", "module", "op", "phase", "source"]
    times = ["gap", "parent_id", "rest", "self_device_time_us", "self_time_us"]
    assert sorted(ops["numbers"]) == sorted([*times, "flops", "size_bytes"])


def test_verdicts_are_kept_to_the_tenth_of_a_microsecond() -> None:
    runs = nested(2), nested(1)
    difference = header_of(*runs)["difference"]
    found = {name: (one["way"], one["scale"]) for name, one in difference["views"]["none host"]["columns"].items()}
    assert found == {**dict.fromkeys(("row", "up", "own"), ("codes", 1)),
                     **dict.fromkeys(("usual", "change", "noise"), ("numbers", 10))}  # fmt: skip
    assert difference["repeats"] == [10, 10]


def test_a_base_of_a_hundred_thousand_ops_takes_few_bytes_each() -> None:
    base = fake_trace(100_000)
    assert len(payload(flame_states(timed_trace(), base), base)) < 350_000


def test_no_ops() -> None:
    header, packed = unpacked(payload(flame_states(make_trace(make_ops()), None)))
    assert (header["flame"]["count"], packed) == (0, b"")
