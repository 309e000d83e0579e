"""nbkit.load opens what Trace.save wrote, and says in one sentence why it cannot open anything else."""

import pandas as pd
import pytest

import nbkit
from nbkit import TraceError
from tests.fakes import small_trace


def test_a_saved_trace_is_opened(tmp_path):
    saved = small_trace(name="mine")
    trace = nbkit.load(str(saved.save(tmp_path / "t")))
    assert trace.meta["name"] == "mine"
    pd.testing.assert_frame_equal(trace.ops, saved.ops)


@pytest.mark.parametrize("name", ["absent", "a/b/c", ""])
def test_what_is_not_there_is_named(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(TraceError, match=r"There is no .*absent|There is no .*c;|is not a trace") as raised:
        nbkit.load(path)
    assert str(path) in str(raised.value)


def test_a_file_of_another_kind_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(TraceError, match=r"notes\.txt is not a trace"):
        nbkit.load(tmp_path / "notes.txt")
