"""What is said beside a script's output, on streams of every kind."""

import io
import os
import sys

from nbkit.command_line.terminal import Narrator, show


def test_a_line_is_there_as_soon_as_it_is_said():
    pipe = io.BytesIO()
    stream = io.TextIOWrapper(pipe, "utf-8")
    Narrator(stream).say("recorded.")
    assert pipe.getvalue() == b"nbkit: recorded.\n"


def test_progress_is_for_terminals_and_a_closed_stream_takes_nothing():
    stream = io.StringIO()
    Narrator(stream).progress("still at it")
    assert stream.getvalue() == ""
    stream.close()
    Narrator(stream).say("gone")
    Narrator(stream).progress("gone")


def test_a_reader_that_has_gone_away_is_no_error_then_or_at_exit(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        show("for nobody")
        stream.flush()  # as Python does at exit
