"""Progress is shown to a person who has waited a second, and to nobody else."""

import io

import pytest

import nbkit
from nbkit.readers import progress
from nbkit.readers.progress import Progress
from tests.readers.exports import slice_, written


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Sets the time in seconds."""
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return now


def test_a_line_is_written_after_a_second_and_taken_away(clock):
    stream = Terminal()
    shown = Progress("t.json", 200_000_000, stream)
    clock[0] = 0.9
    shown.update(10_000_000)
    assert stream.getvalue() == ""
    clock[0] = 2.0
    shown.update(50_000_000)
    line = "reading t.json: 25% of 200 MB, 25 MB/s"
    assert stream.getvalue() == f"\r{line}"
    shown.close()
    assert stream.getvalue() == f"\r{line}\r{' ' * len(line)}\r"


def test_what_is_written_reaches_the_terminal_at_once(clock):
    class Buffered(io.TextIOWrapper):
        def isatty(self):
            return True

    stream = Buffered(reached := io.BytesIO(), newline="")
    shown = Progress("t.json", 1_000_000, stream)
    clock[0] = 2.0
    shown.update(500_000)
    line = b"\rreading t.json: 50% of 1 MB, 0 MB/s"
    assert reached.getvalue() == line
    shown.close()
    assert reached.getvalue() == line + b"\r" + b" " * (len(line) - 1) + b"\r"


def test_the_line_is_written_five_times_a_second(clock):
    stream = Terminal()
    shown = Progress("t.json", 100, stream)
    for tick in range(101):
        clock[0] = 1.0 + tick / 100
        shown.update(50)
    assert 5 <= stream.getvalue().count("reading") <= 6


def test_nothing_is_written_to_a_file(clock):
    stream = io.StringIO()
    shown = Progress("t.json", 100, stream)
    clock[0] = 9.0
    shown.update(50)
    shown.close()
    assert stream.getvalue() == ""


def test_loading_a_file_shows_it(clock, monkeypatch, tmp_path):
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    nbkit.load(written(tmp_path / "t.json", [slice_("cpu_op", "aten::mm", 1.0, 1.0)]))
    first, cleared = stream.getvalue().rstrip("\r").rsplit("\r", 1)
    assert first.startswith("\rreading t.json: 100% of 0 MB") and cleared.strip() == ""
