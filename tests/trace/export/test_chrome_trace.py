"""Tests exported Chrome traces: what viewers need is there, and nbkit reads back the very frames that were written."""

import gzip
import json
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest

import nbkit
from nbkit import TraceError
from tests.readers.cuda_trace import AROUND, events
from tests.readers.exports import exported, profiled, threaded_step, training_step, written
from tests.support.fakes import fake_trace, make_ops, make_trace, small_trace


def assert_equal(actual, expected):
    """Checks that frames and meta are equal, dtypes and order included."""
    assert list(actual.frames) == list(expected.frames)
    for name, frame in expected.frames.items():
        pd.testing.assert_frame_equal(actual.frames[name], frame, check_exact=True)
    assert actual.meta == expected.meta


def drawn(trace, path):
    """Returns the events of the exported file by phase."""
    found = defaultdict(list)
    for event in json.loads(trace.export_chrome_trace(path).read_text())["traceEvents"]:
        found[event["ph"]].append(event)
    return found


@pytest.fixture
def cuda(tmp_path):
    return nbkit.load(written(tmp_path / "rank0.json", events(), **AROUND))


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_a_training_step_on_threads_comes_back_equal(tmp_path, name):
    recorded = profiled(threaded_step, all_threads=True, record_shapes=True)
    trace = nbkit.load(exported(recorded, tmp_path / "t.json"))
    assert_equal(nbkit.load(trace.export_chrome_trace(tmp_path / name)), trace)
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_memory_and_stacks_come_back_equal(tmp_path):
    recorded = profiled(training_step, profile_memory=True, with_stack=True)
    trace = nbkit.load(exported(recorded, tmp_path / "t.json"))
    assert list(trace.frames) == ["ops", "memory"]
    assert_equal(nbkit.load(trace.export_chrome_trace(tmp_path / "out.json")), trace)


def test_a_cuda_trace_comes_back_equal(tmp_path, cuda):
    assert_equal(nbkit.load(cuda.export_chrome_trace(tmp_path / "out.json")), cuda)


def test_a_recorded_optime_comes_back_equal(tmp_path):
    with nbkit.optime(memory=True) as trace:
        training_step()
    kept = {name: frame for name, frame in trace.frames.items() if name in ("ops", "memory", "modules", "timings")}
    loaded = nbkit.load(trace.export_chrome_trace(tmp_path / "out.json"))
    assert set(loaded.frames) == set(kept) >= {"ops", "memory"}
    for name, frame in kept.items():
        pd.testing.assert_frame_equal(loaded.frames[name], frame, check_exact=True)


def test_an_optrace_says_what_the_file_leaves_out(tmp_path):
    trace = small_trace(notes=["mine"])
    loaded = nbkit.load(trace.export_chrome_trace(tmp_path / "out.json"))
    assert list(loaded.frames) == ["ops", "modules"]
    pd.testing.assert_frame_equal(loaded.ops, trace.ops)
    pd.testing.assert_frame_equal(loaded.modules, trace.modules)
    assert loaded.meta["notes"] == ["mine", "not in the Chrome trace: tensors; Trace.save() keeps everything"]
    assert trace.meta["notes"] == ["mine"]


def test_hard_values_come_back(tmp_path):
    ops = make_ops({"op": 'a"\n\u2028ü🙂', "flops": 2**62, "start_us": 0.1 + 0.2, "source": ""}, {"module": ""})
    trace = make_trace(ops)
    loaded = nbkit.load(trace.export_chrome_trace(tmp_path / "out.json"))
    pd.testing.assert_frame_equal(loaded.ops, ops, check_exact=True)


def test_no_ops_come_back_too(tmp_path):
    assert len(nbkit.load(make_trace(make_ops()).export_chrome_trace(tmp_path / "out.json")).ops) == 0


def test_each_op_is_one_slice_and_slices_of_a_track_nest(tmp_path):
    found = drawn(fake_trace(3000), tmp_path / "out.json")
    assert len(found["X"]) == 3000
    tracks = defaultdict(list)
    for event in found["X"]:
        start = round(event["ts"] * 1e3)
        tracks[event["pid"], event["tid"]].append((start, -(round((event["ts"] + event["dur"]) * 1e3))))
    for spans in tracks.values():
        ends = []
        for start, end in sorted(spans):
            ends = [other for other in ends if other > start]
            assert all(-end <= other for other in ends)
            ends.append(-end)


def test_processes_and_threads_are_named(tmp_path, cuda):
    named = {(e["name"], e["pid"], e["tid"]): e["args"].get("name") for e in drawn(cuda, tmp_path / "o.json")["M"]}
    assert {key: name for key, name in named.items() if name} == {
        ("process_name", 1, 0): "host",
        ("process_name", 2, 0): "cuda:0",
        ("thread_name", 1, 0): "thread 0",
        ("thread_name", 2, 1): "stream 7",
        ("thread_name", 2, 2): "stream 16",
    }


def test_arrows_start_and_end_on_slices(tmp_path, cuda):
    found = drawn(cuda, tmp_path / "out.json")
    starts = {(event["pid"], event["tid"], event["ts"]): event["name"] for event in found["X"]}
    pairs = zip(found["s"], found["f"], strict=True)
    arrows = [(tail["cat"], *(starts[e["pid"], e["tid"], e["ts"]] for e in (tail, head))) for tail, head in pairs]
    assert arrows == [
        ("ac2g", "cudaLaunchKernel", "ampere_sgemm_64x32_sliced1x4_nn"),
        ("ac2g", "cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)"),
        ("ac2g", "cudaLaunchKernelExC", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
    ]
    assert [event["id"] for event in found["f"]] == [event["id"] for event in found["s"]]


def test_arrows_lead_from_forward_to_backward(tmp_path):
    found = drawn(small_trace(), tmp_path / "out.json")
    assert [(event["cat"], event["ts"]) for event in found["s"]] == [("fwdbwd", 2.0), ("fwdbwd", 1.0)]
    assert [(event["bp"], event["ts"]) for event in found["f"]] == [("e", 5.0), ("e", 6.0)]


def test_categories_are_those_of_torch(tmp_path, cuda):
    assert Counter(event["cat"] for event in drawn(cuda, tmp_path / "out.json")["X"]) == {
        "cpu_op": 4,
        "user_annotation": 2,
        "cuda_runtime": 4,
        "kernel": 2,
        "gpu_memcpy": 1,
    }


def test_memory_is_a_counter_per_device(tmp_path):
    recorded = profiled(training_step, profile_memory=True)
    trace = nbkit.load(exported(recorded, tmp_path / "t.json"))
    counters = drawn(trace, tmp_path / "out.json")["C"]
    assert {event["name"] for event in counters} == {"allocated on cpu"}
    assert [event["args"]["bytes"] for event in counters] == trace.memory["allocated_bytes"].tolist()


def test_ops_without_times_are_refused(tmp_path):
    trace = make_trace(make_ops({"start_us": np.nan}))
    with pytest.raises(TraceError, match=r"has ops without a time, so there is no timeline to export"):
        trace.export_chrome_trace(tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_leaves_what_was_there(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TraceError, match=r"Cannot write the Chrome trace to .*out\.json: .*file is no folder;"):
        small_trace().export_chrome_trace(tmp_path / "file" / "out.json")
    (tmp_path / "out.json").mkdir()
    with pytest.raises(TraceError, match="it is a folder; give the name of a file in it"):
        small_trace().export_chrome_trace(tmp_path / "out.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out.json"]


def test_folders_are_made_and_old_files_replaced(tmp_path):
    path = tmp_path / "deep" / "out.json.gz"
    small_trace().export_chrome_trace(path)
    assert small_trace(name="second").export_chrome_trace(str(path)) == path
    assert json.loads(gzip.decompress(path.read_bytes()))["nbkit"]["meta"]["name"] == "second"
