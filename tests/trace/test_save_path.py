"""Tests that it is known before anything runs whether a trace can be saved."""

import pytest

from nbkit.errors import TraceError
from nbkit.trace.storage import check_save_path
from nbkit.trace.trace import Trace


def test_a_new_path_a_deep_path_and_an_older_trace_are_fine(tmp_path):
    Trace().save(tmp_path / "older")
    for path in (tmp_path / "new", tmp_path / "a" / "b" / "new", tmp_path / "older"):
        check_save_path(path)
    assert [path.name for path in tmp_path.iterdir()] == ["older"]


def test_something_else_under_that_name_is_not_replaced(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(TraceError, match="notes exists and is not a trace; choose another name"):
        check_save_path(tmp_path / "notes")


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match=r"Cannot save a trace to .*new: .*file is no folder; choose another place"):
        check_save_path(tmp_path / "file" / "new")


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(TraceError, match=r"Cannot save a trace to .*x: file name too long; choose a place"):
        check_save_path(tmp_path / ("x" * 300))
