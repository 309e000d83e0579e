"""A converted Chrome trace is that of the reader of single events, whatever is in the file."""

import json
from pathlib import Path

import pandas as pd
import pytest

import nbkit
from nbkit.errors import TraceError
from nbkit.readers.chrome import json_stream, reader
from nbkit.readers.chrome.reader import read_chrome_trace
from nbkit.readers.chrome.stored import spool, windows
from nbkit.readers.chrome.stored.convert import convert_file
from tests.readers.chrome.stored_traces import trace_of
from tests.readers.exports import exported, profiled, slice_, threaded_step, training_step, written

pytest.importorskip("duckdb")


@pytest.fixture
def is_small(monkeypatch):
    """Has small files parsed and laid out in many parts."""
    monkeypatch.setattr(json_stream, "LEAST_BULK", 1)
    monkeypatch.setattr(json_stream, "BULK", 12_000)
    for module, name in ((windows, "WINDOW"), (spool, "LEAST_ROWS"), (reader, "TAKEN")):
        monkeypatch.setattr(module, name, 30)


@pytest.fixture
def window_counts(monkeypatch):
    """Collects how many windows each conversion had."""
    counts, cuts = [], windows.Windows.cuts
    monkeypatch.setattr(windows.Windows, "cuts", lambda self: counts.append(len(made := cuts(self))) or made)
    return counts


def one_by_one(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(reader, "is_installed", lambda: False)
        return read_chrome_trace(path)


def assert_same(trace, expected):
    assert list(trace.frames) == list(expected.frames)
    for name, frame in expected.frames.items():
        pd.testing.assert_frame_equal(trace.frames[name], frame, check_exact=True)
    assert trace.meta == json.loads(json.dumps(expected.meta, default=str))


def assert_converts(path, monkeypatch):
    expected = one_by_one(path, monkeypatch)
    assert_same(nbkit.load(convert_file(path, path.with_name("converted"))), expected)
    assert_same(read_chrome_trace(path), expected)


@pytest.mark.parametrize("seed", range(4))
def test_work_that_lags_arrows_frames_and_allocations(tmp_path, is_small, window_counts, monkeypatch, seed):
    assert_converts(trace_of(seed, 8, tmp_path / "t.json", baseTimeNanoseconds=10**18), monkeypatch)
    assert window_counts[0] >= 7


@pytest.mark.parametrize("options", [{"with_stack": True}, {"record_shapes": True, "profile_memory": True}])
def test_a_real_profile(tmp_path, is_small, monkeypatch, options):
    def steps():
        for _ in range(3):
            training_step()

    path = exported(profiled(steps, with_flops=True, **options), tmp_path / "t.json")
    assert_converts(path, monkeypatch)


def test_threads_of_a_real_profile(tmp_path, is_small, monkeypatch):
    assert_converts(exported(profiled(threaded_step, all_threads=True), tmp_path / "t.json"), monkeypatch)


ODD = (
    {"ph": "X", "cat": "cpu_op", "name": 5, "pid": 7, "tid": 7, "ts": 1500, "dur": 1},
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": float("nan"), "dur": 1},
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": "7", "tid": 7, "ts": "1500.5", "dur": None},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 7, "tid": 7, "ts": 1500, "dur": 1, "args": {"stream": "20.0"}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 7, "tid": 7, "ts": 1500, "dur": 1, "args": {"device": "gpu"}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 7, "tid": 7, "ts": 1500, "dur": -1, "args": [1]},
    {"ph": "X", "cat": "cpu_op", "name": "a\ud800", "pid": 7, "tid": 7, "ts": 1500, "dur": 1},
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 1621401187223197.123, "dur": 1},
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 1500, "args": {"External id": 2**63}},
    {"ph": "C", "name": "counter", "pid": 7, "ts": 1500, "args": {"value": 1}},
    "no event",
)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_event_among_others(tmp_path, is_small, monkeypatch, odd):
    path = trace_of(0, 2, tmp_path / "t.json")
    path.write_text(path.read_text().replace("[\n", f"[\n{json.dumps(odd)},\n", 1))
    assert_converts(path, monkeypatch)


def op(start, key, **place):
    return slice_("cpu_op", "aten::add", start, 5.0, External_id=key, **place)


@pytest.mark.parametrize(
    "events",
    [
        [op(10 * at, at + 1, pid=pid) for pid in (1, 2) for at in range(9)],
        [op(100 * at, at % 4 + 1) for at in range(12)],
        [op(start, start) for start in (1.0, 9e12, 9.1e12)],
    ],
    ids=["processes with the same ids", "ranks in one process", "two clocks"],
)
def test_a_file_that_is_laid_out_whole(tmp_path, is_small, window_counts, monkeypatch, events):
    assert_converts(written(tmp_path / "t.json", events), monkeypatch)
    assert not window_counts


def test_work_that_nothing_launched_before_the_first_op(tmp_path, is_small, monkeypatch):
    monkeypatch.setattr(windows, "WINDOW", 1)
    kernels = [slice_("kernel", "k", 10.0 * at, 5.0, tid=20, stream=20) for at in range(3)]
    ops = [slice_("cpu_op", "aten::add", 100.0 * at, 5.0, tid=9) for at in range(1, 4)]
    assert_converts(written(tmp_path / "t.json", [*kernels, *ops]), monkeypatch)
    assert_converts(written(tmp_path / "t.json", kernels), monkeypatch)


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool.Spool, "drain", full)
    with pytest.raises(TraceError, match=r"Cannot convert .*No space left on device; free space in .*TMPDIR"):
        convert_file(trace_of(0, 2, tmp_path / "t.json"), tmp_path / "out")


def test_a_file_that_nbkit_wrote(tmp_path, is_small, monkeypatch):
    trace = read_chrome_trace(trace_of(0, 2, tmp_path / "t.json"))
    assert_converts(trace.export_chrome_trace(tmp_path / "own.json"), monkeypatch)


def test_a_damaged_file_leaves_what_was_there(tmp_path, is_small):
    path = trace_of(0, 3, tmp_path / "t.json")
    out = convert_file(path, tmp_path / "out")
    path.write_text(path.read_text()[:-900])
    with pytest.raises(TraceError, match=r"t\.json is cut off after \d+ events"):
        convert_file(path, out)
    assert len(nbkit.load(out).ops) > 80
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "t.json"]


def test_memory_does_not_grow_with_the_file(tmp_path, is_small, monkeypatch):
    """Counts what is held at once: rows of the spool, and those of a window."""
    largest = [0]
    take = windows.Windows._window

    def window(self: windows.Windows, begin: int, end: int) -> windows.Window:
        made = take(self, begin, end)
        largest[0] = max(largest[0], made.events.num_rows)
        return made

    monkeypatch.setattr(windows.Windows, "_window", window)
    convert_file(trace_of(0, 40, tmp_path / "t.json"), Path(tmp_path / "out"))
    assert largest[0] < 200 < 1000 < len(nbkit.load(tmp_path / "out").ops)
