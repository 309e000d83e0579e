"""Tests the partners of backward events against the arrows that torch's own trace file draws."""

import json
from decimal import Decimal

import numpy as np
import pytest

from nbkit.capture.profiler.kineto import Kineto, KinetoOptions
from nbkit.capture.profiler.kineto_events import read
from nbkit.timeline.events import HOST, Events
from nbkit.timeline.links import link
from nbkit.timeline.nesting import call_order
from tests.capture.models import train_step

OPTIONS = KinetoOptions(memory=False, shapes=False, device=None)


def recorded(step, path):
    """Returns raw events of a step, and the trace file that torch writes of the same recording.

    Its times count from a fixed day, and a float does not hold the nanoseconds of more than 104 days.
    """
    kineto = Kineto(OPTIONS)
    kineto.start()
    step()
    result = kineto.stop()
    result.save(str(path))
    events = read(result, OPTIONS, print)
    return events.at(call_order(events.start_ns, events.duration_ns)), json.loads(path.read_text(), parse_float=Decimal)


def arrows(file: dict) -> set[tuple[int, int]]:
    """Returns starts in ns of the forward and the backward event of each arrow."""
    ends = {"s": {}, "f": {}}
    for event in file["traceEvents"]:
        if event.get("cat") == "fwdbwd":
            ends[event["ph"]][event["id"]] = round(event["ts"] * 1000) + file["baseTimeNanoseconds"]
    return {(ends["s"][number], ends["f"][number]) for number in ends["s"]}


def linked(events: Events) -> set[tuple[int, int]]:
    """Returns the same from our links: those of the nodes themselves, which lie one level inside."""
    links = link(events)
    rows = [
        row for row, name in enumerate(events.name) if name.startswith("autograd::engine") and links.forward[row] >= 0
    ]
    inner = {int(links.parent[row]): row for row in reversed(range(len(events)))}
    return {(int(events.start_ns[links.forward[row]]), int(events.start_ns[inner[row]])) for row in rows}


@pytest.mark.parametrize("model", ["llama", "rwkv4", "gru"])
def test_partners_are_those_of_torchs_own_arrows(model, tmp_path):
    events, file = recorded(train_step(model), tmp_path / "trace.json")
    expected = arrows(file)
    found = linked(events)
    assert len(found) > 20
    assert found == expected


def test_times_are_those_of_torchs_own_file(tmp_path):
    events, file = recorded(train_step("mlp"), tmp_path / "trace.json")
    written = [event for event in file["traceEvents"] if event.get("cat") in ("cpu_op", "user_annotation")]
    starts = sorted(round(event["ts"] * 1000) + file["baseTimeNanoseconds"] for event in written)
    ours = np.sort(events.start_ns[events.kind == HOST])
    assert len(starts) == len(ours)
    assert np.abs(ours - np.array(starts)).max() <= 1
