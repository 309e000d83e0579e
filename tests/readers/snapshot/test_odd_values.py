"""One odd event, segment or block of a snapshot is left out and counted; addresses may have all 64 bits."""

import copy

import pytest

import nbkit

FRAMES = [{"name": "forward", "filename": "net.py", "line": 3}]
BASE = 0xFFFF_F000_0000_0000


def event(action, address, size, time, **more):
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": FRAMES, **more}


def snapshot(base=0x7F00_0000_0000):
    blocks = [
        {"address": base, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": FRAMES},
        {"address": base + 1024, "size": 3072, "requested_size": 0, "state": "inactive", "frames": []},
    ]
    segment = {"device": 0, "address": base, "total_size": 4096, "stream": 0, "blocks": blocks}
    events = [
        event("alloc", base, 1000, 1),
        event("alloc", base + 1024, 50, 2),
        event("free_completed", base + 1024, 50, 3),
    ]
    return {
        "segments": [segment, {**segment, "address": base + 4096, "blocks": [{**blocks[1], "address": base + 4096}]}],
        "device_traces": [events],
    }


def test_addresses_of_64_bits(dumped):
    trace, plain = nbkit.load(dumped(snapshot(BASE))), nbkit.load(dumped(snapshot()))
    columns = ["delta_bytes", "allocated_bytes", "allocation_id", "stack_id"]
    assert trace.memory[columns].equals(plain.memory[columns]) and trace.meta["notes"] == []
    assert trace.blocks["allocation_id"].equals(plain.blocks["allocation_id"])
    assert trace.blocks["address"].diff().tolist()[1:] == [1024, 3072]


def test_what_is_listed_twice_counts_once(dumped):
    """torch lists each block once: 1,000 bytes are allocated, however often the file has the block."""
    plain = nbkit.load(dumped(snapshot()))
    for items, noun in (("blocks", "block"), ("segments", "segment")):
        data = snapshot()
        found = data["segments"] if items == "segments" else data["segments"][0]["blocks"]
        found.insert(1, copy.deepcopy(found[0]))
        trace = nbkit.load(dumped(data))
        assert trace.blocks.equals(plain.blocks) and trace.memory.equals(plain.memory)
        assert trace.meta["notes"] == [f"1 {noun} is listed twice: it counts once."]


ODD = [-1, 1.5, 1 << 64, 1e99, None, "text", [1], {}]


@pytest.mark.parametrize(
    ("place", "field", "values", "noun"),
    [
        (("device_traces", 0, 0), "action", [5, None, []], "event"),
        (("device_traces", 0, 0), "size", ODD, "event"),
        (("device_traces", 0, 0), "addr", [1 << 64, "x", {}], "event"),
        (("device_traces", 0, 0), "time_us", ["x", None], "event"),
        (("device_traces", 0, 0), "frames", [5, "", {}, False, [5], [{"name": 1}]], "event"),
        (("segments", 0, "blocks", 0), "size", ODD, "block"),
        (("segments", 0, "blocks", 0), "state", [None, 3], "block"),
        (("segments", 0, "blocks", 0), "address", [1 << 64, "x"], "block"),
        (("segments", 0, "blocks", 0), "frames", [5, "", {}], "block"),
        (("segments", 0), "device", [-1, 1 << 20, "x"], "segment"),
        (("segments", 0), "blocks", [None, 3, [3]], "segment"),
    ],
)
def test_one_odd_field_costs_one_item(dumped, place, field, values, noun):
    for value in values:
        data = copy.deepcopy(snapshot())
        item = data
        for key in place:
            item = item[key]
        item[field] = value
        trace = nbkit.load(dumped(data))
        assert any(
            f"1 {noun} is not as torch writes it" in note or "1 block is" in note for note in trace.meta["notes"]
        )
        assert len(trace.memory) == (2 if noun == "event" else 3)


def test_unknown_actions_and_names_of_no_text_are_told(dumped):
    data = snapshot()
    data["device_traces"][0][1]["action"] = "teleport"
    data["device_traces"][0][0]["frames"] = [{"name": "half \ud800", "filename": "net.py", "line": 3}]
    trace = nbkit.load(dumped(data))
    assert "1 event of unknown actions ('teleport') left out." in trace.meta["notes"]
    assert trace.stacks["function"].tolist()[0] == "half ?"


def test_segments_alone_are_read(dumped):
    trace = nbkit.load(dumped(snapshot()["segments"]))
    assert trace.blocks["size_bytes"].tolist() == [1024, 3072, 3072]
