"""nbkit.load opens what Trace.save wrote, and says in one sentence why it cannot open anything else."""

import errno
from pathlib import Path

import pandas as pd
import pytest
import torch

import nbkit
from nbkit import TraceError
from tests.support.fakes import small_trace


def test_a_saved_trace_is_opened(tmp_path):
    saved = small_trace(name="mine")
    trace = nbkit.load(str(saved.save(tmp_path / "t")))
    assert trace.meta["name"] == "mine"
    pd.testing.assert_frame_equal(trace.ops, saved.ops)


@pytest.mark.parametrize("name", ["absent", "a/b/c", ""])
def test_what_is_not_there_is_named(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(TraceError, match="There is no file or folder .*(absent|c);|is not a trace") as raised:
        nbkit.load(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("given", [None, 3, b"trace", ["trace"], small_trace()])
def test_what_is_no_path_is_named(given):
    with pytest.raises(TraceError, match="^There is no path .*; give that of a folder of Trace.save"):
        nbkit.load(given)


def test_a_name_that_is_too_long_is_one_sentence():
    with pytest.raises(TraceError, match="^Cannot read x+: file name too long; give another path"):
        nbkit.load("x" * 5000)


def test_a_file_of_another_kind_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(TraceError, match=r"notes\.txt is not a trace"):
        nbkit.load(tmp_path / "notes.txt")


@pytest.mark.parametrize("name", ["trace", "trace.json", "trace.json.gz", "trace.parquet"])
def test_the_kind_is_told_from_the_content_not_the_name(tmp_path, name):
    saved = small_trace(name="mine")
    assert nbkit.load(saved.save(tmp_path / "folder" / name)).frames.keys() == saved.frames.keys()
    pd.testing.assert_frame_equal(nbkit.load(saved.export_chrome_trace(tmp_path / name)).ops, saved.ops)


def test_a_chrome_trace_of_torch_is_opened(tmp_path):
    with torch.profiler.profile() as profiler:
        torch.ones(2) + 1
    profiler.export_chrome_trace(str(tmp_path / "t.json.gz"))
    assert "aten.add" in nbkit.load(tmp_path / "t.json.gz").ops["op"].tolist()


def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    def refuse(self, mode):
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "t.json").write_text("{}")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TraceError, match=r"Cannot read .*t\.json: permission denied; give a file that you may read"):
        nbkit.load(tmp_path / "t.json")
