"""Folders of captured calls that are damaged: each line says why it is no call."""

from zlib import crc32

import pytest

from nbkit.errors import TraceError
from nbkit.trace.calls.layout import CALLS, line_of, record_of
from nbkit.trace.calls.reading import CallFolder
from nbkit.trace.calls.writing import CallWriter


def line(text):
    return b'{"crc32":"%08x","call":%b}\n' % (crc32(text), text)


def test_a_whole_line_is_a_call():
    record = {"op": "aten.add.Tensor", "args": [1, "\u00e4"]}
    assert record_of(line_of(record)) == record


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (line_of({"op": "a"})[:-1], "its record is cut off or damaged"),
        (line_of({"op": "a"})[1:], "its record is cut off or damaged"),
        (line_of({"op": "a"}).replace(b'"a"', b'"b"'), "its record is damaged"),
        (line(b'{"op"'), "its record is no JSON"),
        (line(b"[" * 100_000), "its record is no JSON"),
        (line(b"[1]"), "its record is no JSON object"),
    ],
)
def test_a_line_that_is_none_says_why(damaged, reason):
    with pytest.raises(TraceError, match=f"^{reason}; capture it again$"):
        record_of(damaged)


def test_calls_that_cannot_be_read_are_one_sentence(tmp_path):
    CallWriter(tmp_path / "calls", {}, 1000).finish()
    assert list(CallFolder(tmp_path / "calls")) == []
    (tmp_path / "calls" / CALLS).mkdir()
    with pytest.raises(TraceError, match=f"^Cannot read .*{CALLS}: is a directory.$"):
        list(CallFolder(tmp_path / "calls"))
