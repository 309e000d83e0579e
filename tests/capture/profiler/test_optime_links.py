"""Tests the partners of backward events against the arrows that torch's own trace file draws."""

import json
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest
from torch._C._autograd import DeviceType

from nbkit.capture.profiler.kineto import Kineto, KinetoOptions
from nbkit.capture.profiler.kineto_events import _add_device, read
from nbkit.compat import torch_versions
from nbkit.timeline.events import ABSENT, HOST, KERNEL, RUNTIME, Events
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


def test_work_of_a_device_has_its_device_and_stream_its_bytes_and_the_call_that_launched_it(monkeypatch):
    """As Kineto tells it: own ids of ops of the host, those of their launches, and details as the inside of JSON."""

    def event(own, linked=0, device=DeviceType.CPU, details=""):
        answers = {
            "correlation_id": own,
            "linked_correlation_id": linked,
            "device_type": device,
            "device_index": 1,
            "device_resource_id": 20,
        }
        return SimpleNamespace(details=details, **{name: lambda it=it: it for name, it in answers.items()})

    monkeypatch.setattr(torch_versions, "metadata_json", lambda event: event.details)
    kernel, copy = '"stream": 20', '"bytes": 64, "memory bandwidth (GB/s)": 0.5'
    raw = [
        event(7),
        event(9, 7),
        event(9, 7, DeviceType.CUDA, kernel),
        event(11, 7, DeviceType.CUDA, copy),
        event(12, 7, DeviceType.CUDA, '"bytes": nan or so'),
    ]
    events = Events(
        name=["aten::mm", "cudaLaunchKernel", "gemm", "Memcpy HtoD", "Memset"],
        kind=np.array([HOST, RUNTIME, KERNEL, KERNEL, KERNEL], dtype=np.int8),
        start_ns=np.arange(5),
        duration_ns=np.ones(5, dtype=np.int64),
        thread=np.ones(5, dtype=np.int64),
    )
    _add_device(events, raw, events.kind)
    assert events.device == [None, None, "cuda:1", "cuda:1", "cuda:1"]
    assert events.stream.tolist() == [ABSENT, ABSENT, 20, 20, 20]
    assert events.size_bytes.tolist() == [ABSENT, ABSENT, ABSENT, 64, ABSENT]
    assert events.own_id.tolist() == [7, 0, 0, 0, 0]
    assert events.correlation.tolist() == [0, 9, 9, 11, 12]
    assert events.external_id.tolist() == [0, 7, 7, 7, 7]
