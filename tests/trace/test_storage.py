"""Tests saving and loading: equal after a round trip, whole or not at all, one sentence for whatever is wrong."""

import errno
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nbkit import Trace, TraceError
from nbkit.errors import SchemaError
from nbkit.schema import SCHEMA_VERSION, TEXT
from nbkit.trace import storage
from tests.processes import PYTHON
from tests.support.fakes import small_trace


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_a_round_trip_gives_equal_frames_and_meta(tmp_path):
    saved = small_trace(name="n", skipped={"a": 2})
    loaded = Trace.load(saved.save(tmp_path / "t"))
    assert loaded.meta == saved.meta
    assert loaded.frames.keys() == saved.frames.keys()
    for name, frame in saved.frames.items():
        pd.testing.assert_frame_equal(loaded.frames[name], frame, check_exact=True)
        assert [str(dtype) for dtype in loaded.frames[name].dtypes] == [str(dtype) for dtype in frame.dtypes]


def test_values_that_are_hard_to_write_come_back(tmp_path):
    trace = small_trace()
    tensors = trace.tensors.assign(mean=np.inf, std=np.nan, min=-np.inf, name='"ü\n\u2028🙂')
    tensors["name"] = tensors["name"].astype(TEXT)
    ops = trace.ops.assign(flops=pd.array([2**62] * len(trace.ops), "Int64"))
    loaded = Trace.load(Trace({**trace.frames, "tensors": tensors, "ops": ops}, trace.meta).save(tmp_path / "t"))
    pd.testing.assert_frame_equal(loaded.tensors, tensors)
    pd.testing.assert_frame_equal(loaded.ops, ops)


def test_files_hold_what_pandas_itself_would_write(tmp_path):
    trace = small_trace()
    path = trace.save(tmp_path / "t")
    for name, frame in trace.frames.items():
        written = pq.read_table(path / f"{name}.parquet")
        # pandas 2.2 would write a name for the dtype of texts that no other pandas knows.
        assert written.equals(pa.Table.from_pandas(frame, preserve_index=False), check_metadata=str(TEXT) == "str")


def test_files_call_the_dtype_of_texts_the_same_with_every_pandas(tmp_path):
    path = small_trace().save(tmp_path / "t")
    about = {column["name"]: column for column in pq.read_schema(path / "ops.parquet").pandas_metadata["columns"]}
    assert (about["op"]["numpy_type"], about["flops"]["numpy_type"]) == ("str", "Int64")


def test_a_frame_that_was_changed_is_refused(tmp_path):
    trace = small_trace()
    trace.ops["mine"] = 1
    with pytest.raises(SchemaError, match=r"ops needs the columns .* not expected: mine\."):
        trace.save(tmp_path / "t")
    assert names(tmp_path) == []


def test_the_folder_is_one_parquet_file_per_frame_and_meta(tmp_path):
    path = small_trace().save(tmp_path / "deep" / "er" / "t")
    assert names(path) == ["meta.json", "modules.parquet", "ops.parquet", "tensors.parquet"]
    meta = json.loads((path / "meta.json").read_text())
    assert (meta["schema_version"], meta["frames"]) == (SCHEMA_VERSION, ["ops", "tensors", "modules"])
    assert names(tmp_path / "deep" / "er") == ["t"]
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o777 & ~mask


def test_saving_replaces_the_trace_that_was_there(tmp_path):
    small_trace(name="old").save(tmp_path / "t")
    (tmp_path / "t" / "left.parquet").write_text("x")
    small_trace(name="new").save(tmp_path / "t")
    assert Trace.load(tmp_path / "t").meta["name"] == "new"
    assert names(tmp_path) == ["t"]
    assert "left.parquet" not in names(tmp_path / "t")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_no_trace_is_never_overwritten(tmp_path, kind):
    path = tmp_path / "precious"
    path.write_text("mine") if kind == "file" else (path.mkdir(), (path / "data").write_text("mine"))
    with pytest.raises(TraceError, match="exists and is not a trace; choose another name"):
        small_trace().save(path)
    assert (path if kind == "file" else path / "data").read_text() == "mine"
    assert names(tmp_path) == ["precious"]


@pytest.mark.parametrize("name", ["file/t", "x" * 300, "/proc/nowhere/t", "nul\0byte"])
def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match=r"Cannot save the trace to .*; (free space or )?choose another place\."):
        small_trace().save(tmp_path / name)
    assert names(tmp_path) == ["file"]


STAGES = {
    "folder": (storage.tempfile, "mkdtemp"),
    "frame": (storage.pq, "write_table"),
    "meta": (Path, "write_text"),
    "rename": (Path, "rename"),
}


def fails_at(monkeypatch, stage, call, error):
    """Lets the n-th call of a stage of saving raise."""
    owner, name = STAGES[stage]
    original, calls = getattr(owner, name), []

    def replaced(*args, **kwargs):
        calls.append(1)
        if len(calls) == call:
            raise error
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, replaced)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
FAILURES = [("folder", 1), ("frame", 1), ("frame", 3), ("meta", 1), ("rename", 1), ("rename", 2)]


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full disk", "interrupt"])
@pytest.mark.parametrize(("stage", "call"), FAILURES)
def test_a_failure_at_any_stage_leaves_the_previous_trace(tmp_path, monkeypatch, stage, call, error):
    small_trace(name="old").save(tmp_path / "t")
    fails_at(monkeypatch, stage, call, error)
    text = "no space left on device; free space" if error is FULL else None
    with pytest.raises(TraceError if error is FULL else KeyboardInterrupt, match=text):
        small_trace(name="new").save(tmp_path / "t")
    monkeypatch.undo()
    assert Trace.load(tmp_path / "t").meta["name"] == "old"
    assert names(tmp_path) == ["t"]


@pytest.mark.parametrize(("stage", "call"), FAILURES[:-1])
def test_a_failure_of_a_first_save_leaves_nothing(tmp_path, monkeypatch, stage, call):
    fails_at(monkeypatch, stage, call, FULL)
    with pytest.raises(TraceError, match="no space left on device"):
        small_trace().save(tmp_path / "t")
    assert names(tmp_path) == []


def test_a_disk_that_is_really_full(tmp_path):
    """No file may grow beyond a few hundred bytes in that process."""
    code = f"""
import resource, signal
from tests.support.fakes import small_trace
from nbkit import TraceError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
try:
    small_trace().save({str(tmp_path / "t")!r})
except TraceError as error:
    print(error)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([*PYTHON, "-c", code], cwd=root, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("Cannot save the trace to ")
    assert done.stdout.count("\n") == 1
    assert names(tmp_path) == []


def damage_frames(path, frames):
    meta = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps({**meta, "frames": frames}))


def damage_columns(path):
    table = pq.read_table(path / "ops.parquet")
    pq.write_table(table.drop_columns(["step"]), path / "ops.parquet")


def truncate(file):
    file.write_bytes(file.read_bytes()[:-20])


NO_META = "meta.json has no schema version or no list of frames; record or copy it again"
OTHER_VERSION = (
    rf"has format version \d+, and this nbkit reads format version {SCHEMA_VERSION} only; record it again with this "
    "version of nbkit, or open it with the one that wrote it"
)
DAMAGE = {
    "newer": (lambda path: damage_meta(path, schema_version=SCHEMA_VERSION + 1), OTHER_VERSION),
    "older": (lambda path: damage_meta(path, schema_version=SCHEMA_VERSION - 1), OTHER_VERSION),
    "no meta": (lambda path: (path / "meta.json").unlink(), "is not a trace: it has no meta.json"),
    "meta cut": (
        lambda path: truncate(path / "meta.json"),
        "is damaged: meta.json is no JSON .*record or copy it again",
    ),
    "meta a list": (
        lambda path: (path / "meta.json").write_text("[]"),
        "is damaged: meta.json is a list, not an object",
    ),
    "meta empty": (lambda path: (path / "meta.json").write_text("{}"), f"is damaged: {NO_META}"),
    "meta no text": (lambda path: (path / "meta.json").write_bytes(b"\xff\xfe"), "is damaged: "),
    "version no number": (lambda path: damage_meta(path, schema_version="one"), f"is damaged: {NO_META}"),
    "frames no list": (lambda path: damage_frames(path, 3), f"is damaged: {NO_META}"),
    "unknown frame": (
        lambda path: damage_frames(path, ["ops", "unheard"]),
        "holds a frame 'unheard' that this nbkit does not",
    ),
    "frame outside": (
        lambda path: damage_frames(path, ["../t/ops"]),
        "holds a frame '../t/ops' that this nbkit does not",
    ),
    "frame gone": (lambda path: (path / "ops.parquet").unlink(), "is damaged: ops.parquet is missing"),
    "frame cut": (lambda path: truncate(path / "ops.parquet"), "is damaged: .*record or copy it again"),
    "frame empty": (lambda path: (path / "ops.parquet").write_bytes(b""), "is damaged: .*record or copy it again"),
    "column gone": (damage_columns, "is damaged: ops needs the columns .*missing: step"),
}


def damage_meta(path, **changes):
    meta = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps({**meta, **changes}))


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_trace_is_one_sentence(tmp_path, kind):
    path = small_trace().save(tmp_path / "t")
    harm, text = DAMAGE[kind]
    harm(path)
    with pytest.raises(TraceError, match=text) as raised:
        Trace.load(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_of_another_writer_are_read(tmp_path):
    path = small_trace().save(tmp_path / "t")
    frame = pd.read_parquet(path / "ops.parquet").astype({"parent_id": "float64", "op": object})
    frame.to_parquet(path / "ops.parquet")
    pd.testing.assert_frame_equal(Trace.load(path).ops, small_trace().ops)


def test_a_recording_is_saved_and_comes_back(tmp_path):
    import torch

    from tests.capture.models import record

    trace = record(lambda: torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward(), values="stats")
    loaded = Trace.load(trace.save(tmp_path / "t"))
    assert loaded.meta == trace.meta
    for name, frame in trace.frames.items():
        pd.testing.assert_frame_equal(loaded.frames[name], frame)


def test_what_several_processes_save_to_one_name_is_all_there(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    for rank in range(4):
        monkeypatch.setenv("RANK", str(rank))
        storage.check_save_path(tmp_path / "x")
        saved = Trace(small_trace().frames, {"name": f"of {rank}"}).save(tmp_path / "x")
        assert saved == tmp_path / "x" / f"rank={rank}"
        assert Trace(small_trace().frames, {"name": f"of {rank}"}).save(saved) == saved
    assert [Trace.load(tmp_path / "x" / f"rank={rank}").meta["name"] for rank in range(4)] == [
        "of 0", "of 1", "of 2", "of 3"
    ]  # fmt: skip
    with pytest.raises(TraceError, match=r"a folder of 4 traces \(rank=0, .*rank=3\); give one .* such as .*rank=0\."):
        Trace.load(tmp_path / "x")


def test_processes_do_not_write_into_the_trace_of_one(tmp_path, monkeypatch):
    small_trace().save(tmp_path / "x")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(TraceError, match="x is a trace of one process; choose another name"):
        small_trace().save(tmp_path / "x")
    assert len(Trace.load(tmp_path / "x").ops)
