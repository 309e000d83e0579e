"""What a snapshot becomes: frames, meta, findings; and what is said of other pickles."""

import gzip
import json
from typing import Any

import pytest

import nbkit
from nbkit.errors import TraceError
from nbkit.readers.registry import reader_of
from nbkit.readers.snapshot.reader import SNAPSHOT
from tests.support.snapshots import Allocator, snapshot_of

FRAME = {"name": "fill", "filename": "train.py", "line": 7}


def small() -> dict[str, Any]:
    allocator = Allocator()
    allocator.alloc(1000, [FRAME])
    return snapshot_of(allocator)


@pytest.mark.parametrize("name", ["snapshot.pickle", "snapshot.pkl", "snapshot", "dump.bin"])
def test_a_snapshot_is_known_by_its_content(dumped, name):
    path = dumped(small())
    other = path.rename(path.parent / name)
    assert reader_of(other) is SNAPSHOT
    other.write_bytes(gzip.compress(other.read_bytes()))
    assert nbkit.load(other).memory["delta_bytes"].tolist() == [1000]


def test_meta_says_what_the_file_is(dumped):
    meta = nbkit.load(dumped(small())).meta
    assert (meta["verb"], meta["name"], meta["devices"]) == ("load", "snapshot.pickle", ["cuda:0"])
    assert meta["snapshot"]["events"] == 2
    assert meta["snapshot"]["allocator_settings"] == {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1}
    assert json.dumps(meta)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1, 2], "is a pickle of a list, but has no 'segments'; expected a memory snapshot"),
        ({"state_dict": {}}, "is a pickle of a dict, but has no 'segments'"),
        ({"segments": [1], "device_traces": []}, "is no memory snapshot as torch writes it"),
        ({"segments": [], "device_traces": 5}, "is no memory snapshot as torch writes it"),
        ({"segments": [], "device_traces": [[{}]]}, "as torch writes it: KeyError, 'action'"),
        ({"segments": [], "device_traces": [[{"action": (1, 2)}]]}, "actions or states that are no texts"),
        ({"segments": [{"address": 0, "total_size": 1, "blocks": [{"size": 1, "state": [1]}]}]},
         "actions or states that are no texts"),
        ({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": -1}]]}, "sizes below 0"),
        ({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 1 << 80}]]}, "as torch writes it"),
        ({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 1, "frames": [{"name": []}]}]]},
         "as torch writes it"),
    ],
)  # fmt: skip
def test_other_pickles_are_refused_in_one_sentence(dumped, data, message):
    with pytest.raises(TraceError, match=message) as caught:
        nbkit.load(dumped(data))
    assert "\n" not in str(caught.value)


def test_one_object_many_times_does_not_grow(dumped):
    snapshot = small()
    with pytest.raises(TraceError, match="its 'segments' hold one object twice"):
        nbkit.load(dumped({**snapshot, "segments": snapshot["segments"] * 3}))
    with pytest.raises(TraceError, match="its 'device_traces' hold one object twice"):
        nbkit.load(dumped({**snapshot, "device_traces": snapshot["device_traces"] * 3}))
    with pytest.raises(TraceError, match="more than 1,024 devices"):
        nbkit.load(dumped({**snapshot, "segments": [{**snapshot["segments"][0], "device": 10**9}]}))


def test_a_file_of_that_name_is_meant_as_a_snapshot(tmp_path):
    (tmp_path / "snapshot.pickle").write_text("hello")
    with pytest.raises(
        TraceError, match="cannot be read: it does not begin as a pickle of protocol 2 to 5; expected a"
    ):
        nbkit.load(tmp_path / "snapshot.pickle")


def test_a_snapshot_without_history_has_its_blocks(dumped):
    snapshot = small()
    snapshot["device_traces"] = [[]]
    trace = nbkit.load(dumped(snapshot))
    assert len(trace.memory) == 0 and len(trace.blocks) == 2
    assert "call torch.cuda.memory._record_memory_history() before" in trace.meta["notes"][0]


def test_a_request_that_failed_is_a_finding(dumped):
    allocator = Allocator()
    allocator.alloc(1 << 20, [FRAME])
    allocator.fail(3 << 30, 5 << 20, [{**FRAME, "line": 9}])
    (finding,) = nbkit.load(dumped(snapshot_of(allocator))).findings.to_dict("records")
    assert (finding["rule"], finding["severity"], finding["source"]) == ("out_of_memory", "error", "train.py:9")
    assert finding["message"] == (
        "a request of 3.00 GiB on cuda:0 failed after 20.0 µs: 1.00 MiB were allocated, 1.00 MiB reserved and free, "
        "5.00 MiB were left on the device"
    )
    evidence = json.loads(finding["evidence"])
    assert (evidence["requested_bytes"], evidence["free_bytes"], evidence["reserved_bytes"]) == (
        3 << 30,
        5 << 20,
        2 << 20,
    )


def test_requests_that_failed_in_one_line_are_one_finding(dumped):
    allocator = Allocator()
    for size in (4 << 30, 3 << 30):
        allocator.fail(size, 0, [FRAME])
    allocator.fail(1, 0)
    findings = nbkit.load(dumped(snapshot_of(allocator))).findings
    assert findings["count"].tolist() == [2, 1]
    assert findings["message"].str.contains("a request of 4.00 GiB").tolist() == [True, False]
    assert findings["source"].isna().tolist() == [False, True]


def test_a_request_that_failed_beside_enough_free_memory_is_fragmentation(dumped):
    allocator = Allocator()
    for address in [allocator.alloc(1 << 20) for _ in range(4)][::2]:
        allocator.free(address)
    allocator.fail((1 << 20) + 1, 0)
    (advice,) = nbkit.load(dumped(snapshot_of(allocator))).findings["advice"]
    assert "expandable_segments:True" in advice


def test_a_snapshot_is_saved_and_loaded_as_any_trace(dumped, tmp_path):
    trace = nbkit.load(dumped(small()))
    again = nbkit.load(trace.save(tmp_path / "saved"))
    for name, frame in trace.frames.items():
        assert again.frames[name].equals(frame)
