"""opreport: what it takes, what it leaves out, and what it does where a file cannot be written."""

import errno
import io
import os
import re

import pytest

import nbkit
from nbkit.errors import NbkitError
from nbkit.trace.trace import Trace
from tests.support.diff_traces import faulty_trace
from tests.support.fakes import make_ops, make_trace, small_trace


def test_the_file_is_where_it_was_asked_for(tmp_path) -> None:
    path = nbkit.opreport(small_trace(name="step"), path=str(tmp_path / "new/report.html"))
    assert path == tmp_path / "new/report.html"
    assert "<h1>step, Net</h1>" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("traces", "options", "sentence"),
    [
        ([], {}, "There is no trace to report; give one or more."),
        (
            [small_trace().ops],
            {},
            "are none of a table of nodes; give the frame that nbkit.cost_table() returned, or",
        ),
        (["no_such_trace"], {}, "There is no no_such_trace; give the folder that Trace.save() wrote."),
        ([Trace()], {}, "<Trace '': still recording> has no ops to report; is it still being recorded?"),
        ([make_trace(make_ops())], {}, "No op was recorded, so there is nothing to report; trace.meta says what was"),
        ([small_trace(), small_trace()], {"base": small_trace()}, "base is compared with one trace, and 2 were given"),
        ([small_trace()], {"base": "before"}, "base is expected to be a trace, and this is a str"),
        ([small_trace()], {"base": Trace()}, "<Trace '': still recording> has no ops to report"),
    ],
)
def test_bad_input_is_one_sentence_and_no_file(tmp_path, traces, options, sentence) -> None:
    with pytest.raises(NbkitError, match=re.escape(sentence)):
        nbkit.opreport(*traces, path=tmp_path / "r.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_one_sentence_and_nothing_is_left(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NbkitError, match=r"Cannot write the report to .*r\.html: .* is no folder; choose another"):
        nbkit.opreport(small_trace(), path=tmp_path / "file" / "r.html")
    (tmp_path / "folder.html" / "x").mkdir(parents=True)
    with pytest.raises(NbkitError, match="it is a folder; give the name of a file in it"):
        nbkit.opreport(small_trace(), path=tmp_path / "folder.html")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder.html"]


class FullDisk(io.FileIO):
    """A file on a disk without room."""

    def __init__(self, handle: int) -> None:
        super().__init__(handle, "wb")

    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_up_leaves_the_file_that_was_there(tmp_path, monkeypatch) -> None:
    (tmp_path / "r.html").write_text("before")
    monkeypatch.setattr(os, "fdopen", lambda handle, _: io.BufferedWriter(FullDisk(handle)))
    with pytest.raises(NbkitError, match=r"r\.html: no space left on device; free space or choose another place"):
        nbkit.opreport(small_trace(), path=tmp_path / "r.html")
    monkeypatch.undo()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("r.html", "before")]


def test_values_are_in_it_only_if_asked(tmp_path) -> None:
    without, with_values = (
        nbkit.opreport(faulty_trace(), path=tmp_path / f"{values}.html", values=values).read_text("utf-8")
        for values in (False, True)
    )
    assert ("Worst difference: " in without, "Worst difference: " in with_values) == (False, True)
