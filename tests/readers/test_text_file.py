"""Tests lines of text files: encodings, line ends, gzip, and what is wrong with them."""

import gzip

import pytest

from nbkit.errors import TraceError
from nbkit.readers import text_file
from nbkit.readers.text_file import text_lines, text_pieces

TEXT = "one\nzwei: \u00e4\n\n\u56db four\u2028\x0c\n"
LINES = ["one", "zwei: \u00e4", "", "\u56db four\u2028\x0c"]


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        TEXT.encode().removesuffix(b"\n"),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\r\n").encode("utf-16").removesuffix(b"\n\x00"),
        gzip.compress(TEXT.encode("utf-16"), mtime=0),
    ],
)
@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 1 << 20])
def test_lines_are_the_same_in_every_encoding(tmp_path, monkeypatch, data, piece_bytes):
    monkeypatch.setattr(text_file, "PIECE_BYTES", piece_bytes)
    (tmp_path / "log").write_bytes(data)
    lines = text_lines(tmp_path / "log")
    assert list(lines) == LINES
    assert (lines.undecodable_bytes, lines.shortened, lines.damage) == (0, 0, None)


@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_foreign_bytes_are_replaced_and_counted(tmp_path, monkeypatch, piece_bytes):
    monkeypatch.setattr(text_file, "PIECE_BYTES", piece_bytes)
    (tmp_path / "log").write_bytes("a\ufffd\n".encode() + "\u914d\u7f6e b\n".encode("gbk") + b"c\n")
    lines = text_lines(tmp_path / "log")
    assert [line[-1] for line in lines] == ["\ufffd", "b", "c"]
    assert lines.undecodable_bytes == 4


def test_half_a_character_of_utf_16_is_counted(tmp_path):
    (tmp_path / "log").write_bytes("ab".encode("utf-16") + b"c")
    lines = text_lines(tmp_path / "log")
    assert list(lines) == ["ab\ufffd"]
    assert lines.undecodable_bytes == 2


@pytest.mark.parametrize(("data", "lost"), [("ab\u20ac".encode()[:-1], 2), ("ab".encode("utf-16") + b"c", 1)])
def test_half_a_character_at_the_end_of_a_text_is_replaced(tmp_path, data, lost):
    (tmp_path / "trace.json").write_bytes(data)
    assert "".join(text_pieces(tmp_path / "trace.json")) == "ab" + "\ufffd" * lost


def test_empty_file_has_no_lines_and_no_trace(tmp_path):
    (tmp_path / "log").write_bytes(b"")
    assert list(text_lines(tmp_path / "log")) == []
    with pytest.raises(TraceError, match="is empty; a trace holds at least a list of events"):
        list(text_pieces(tmp_path / "log"))


def test_gzip_that_was_cut_gives_what_there_is(tmp_path):
    text = "".join(f"line {number} {number**7}\n" for number in range(20000))
    (tmp_path / "log.gz").write_bytes(gzip.compress(text.encode())[:50_000])
    lines = text_lines(tmp_path / "log.gz")
    found = list(lines)
    assert len(found) > 3000
    assert found[:-1] == text.split("\n")[: len(found) - 1]
    assert lines.damage == "its gzip data end in the middle"


def test_damaged_gzip_gives_what_there_is(tmp_path):
    data = bytearray(gzip.compress(b"first\nsecond\n"))
    data[-8] ^= 1  # the checksum
    (tmp_path / "log.gz").write_bytes(data)
    lines = text_lines(tmp_path / "log.gz")
    assert list(lines) == ["first", "second"]
    assert "its gzip data are damaged: CRC check failed" in str(lines.damage)


def test_line_without_end_is_shortened(tmp_path, monkeypatch):
    monkeypatch.setattr(text_file, "LONGEST_LINE", 8)
    monkeypatch.setattr(text_file, "PIECE_BYTES", 4)
    (tmp_path / "log").write_bytes(b"ab\n" + b"x" * 40 + b"\ncd\n" + b"y" * 20)
    lines = text_lines(tmp_path / "log")
    assert list(lines) == ["ab", "xxxxxxxx", "cd", "yyyyyyyy"]
    assert lines.shortened == 2


def test_folder_cannot_be_read(tmp_path):
    with pytest.raises(TraceError, match="Cannot read .*: is a directory; give a file that you may read."):
        list(text_lines(tmp_path))
