"""Progress is shown to a person who waits, and to nobody else; it leaves nothing behind."""

import io
import threading
from contextlib import nullcontext
from time import monotonic, sleep
from types import SimpleNamespace

import pytest
import torch

import nbkit
from nbkit import progress
from nbkit.progress import Progress, duration_text
from tests.readers.exports import slice_, written

LIMIT_S = 30.0


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Progress begins at once, and lines follow each other quickly."""
    monkeypatch.delenv("NBKIT_PROGRESS")
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "EVERY_S", 0.01)


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    # pytest gives sys.stderr another value between a fixture and its test.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    return stream


def wait_for(stream: io.StringIO, text: str) -> None:
    end = monotonic() + LIMIT_S
    while text not in stream.getvalue() and monotonic() < end:
        sleep(0.01)
    assert text in stream.getvalue()


def last_line(stream: io.StringIO) -> str:
    """What the terminal shows in its last line."""
    return stream.getvalue().rsplit("\r", 1)[-1]


def test_the_line_follows_the_work_and_goes_away(terminal):
    done = ["1 of 2"]
    with Progress(lambda: f"work: {done[0]}"):
        wait_for(terminal, "\rwork: 1 of 2 (0 s)")
        done[0] = "2 of 2"
        wait_for(terminal, "\rwork: 2 of 2 (0 s)")
    assert last_line(terminal) == ""
    assert terminal.getvalue().rstrip("\r").endswith(" " * len("work: 2 of 2 (0 s)"))
    assert not [thread for thread in threading.enumerate() if thread.name == "nbkit progress"]


def test_quick_work_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_S", LIMIT_S)
    with Progress(lambda: "work"):
        pass
    assert terminal.getvalue() == ""


def test_work_that_tells_the_whole_is_shown_in_place_of_what_is_inside_it(terminal):
    with Progress(lambda: "outer", tells_whole=True), Progress(lambda: "inner"):
        wait_for(terminal, "outer")
        sleep(0.1)
        assert "inner" not in terminal.getvalue()


def test_work_inside_other_work_is_the_one_that_is_shown(terminal):
    with Progress(lambda: "outer"):
        wait_for(terminal, "outer")
        with Progress(lambda: "inner"):
            wait_for(terminal, "inner")
            before = terminal.getvalue().count("outer")
            sleep(0.1)
            assert terminal.getvalue().count("outer") <= before + 1
        wait_for(io.StringIO(terminal.getvalue()[-200:]), "outer")


@pytest.mark.parametrize("kind", ["file", "switched off", "closed"])
def test_nobody_is_told_who_does_not_watch(kind, monkeypatch):
    stream = io.StringIO() if kind == "file" else Terminal()
    if kind == "switched off":
        monkeypatch.setenv("NBKIT_PROGRESS", "0")
    if kind == "closed":
        stream.close()
    with Progress(lambda: "work", stream):
        sleep(0.1)
    assert kind == "closed" or stream.getvalue() == ""


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_a_process_without_a_terminal_works_on(stream, monkeypatch):
    """Python has no stderr where it has no console; asking a closed file whether it is a terminal is an error."""
    if stream is not None:
        stream.close()
    monkeypatch.setattr("sys.stderr", stream)
    with Progress(lambda: "work"):
        sleep(0.05)


def test_a_stream_that_is_closed_meanwhile_ends_the_line_and_not_the_work():
    stream = Terminal()
    with Progress(lambda: "work", stream):
        wait_for(stream, "work")
        stream.close()
        sleep(0.1)


def test_the_end_of_the_line_reaches_a_terminal_that_waits_for_a_flush():
    class Buffered(Terminal):
        def flush(self):
            self.shown = self.getvalue()

    with Progress(lambda: "work", stream := Buffered()):
        wait_for(stream, "work")
    assert stream.shown == stream.getvalue() and last_line(stream) == ""


def test_an_error_takes_the_line_away(terminal):
    def fail() -> None:
        with Progress(lambda: "work"):
            wait_for(terminal, "work")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert last_line(terminal) == ""


def test_waiting_is_told_in_seconds_then_minutes():
    assert [duration_text(seconds) for seconds in (0.9, 59.9, 61, 600)] == ["0 s", "59 s", "1 min 01 s", "10 min 00 s"]


def test_loading_a_file_says_how_far_it_is(terminal, tmp_path, monkeypatch):
    from nbkit.readers import text_file

    monkeypatch.setattr(text_file, "PIECE_BYTES", 64)
    decode = text_file.Decoder.decode

    def slowly(*args, **options):
        sleep(0.02)
        return decode(*args, **options)

    monkeypatch.setattr(text_file.Decoder, "decode", slowly)
    nbkit.load(written(tmp_path / "t.json", [slice_("cpu_op", "aten::mm", float(at), 1.0) for at in range(9)]))
    assert "\rreading t.json: " in terminal.getvalue()
    assert last_line(terminal) == ""


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        (nbkit.optrace, ["optrace: ", " ops, last aten.mm"]),
        (nbkit.opcheck, ["opcheck: ", " ops, last aten.mm"]),
        (nbkit.opdiff, ["opdiff: ", " calls compared, last aten.mm"]),
        (nbkit.optime, ["optime ("]),
    ],
)
def test_a_recording_says_what_runs(verb, told, terminal):
    left = torch.ones(2, 2)
    with verb() as trace:
        for _ in range(3):
            left @ left
        for text in told:
            wait_for(terminal, text)
    assert last_line(terminal) == ""
    assert trace.complete
    assert not [thread for thread in threading.enumerate() if thread.name == "nbkit progress"]


@pytest.mark.parametrize(
    "verb", [nbkit.optrace, nbkit.opcheck, nbkit.opdiff, nbkit.opcost, nbkit.opaudit, nbkit.opstable]
)
def test_a_recording_that_takes_long_to_begin_says_so(verb, terminal, monkeypatch):
    """The first of a process imports for seconds: the line is asked for before anything is recorded."""
    recorder = verb()
    install = recorder._install

    def slowly(recording):
        wait_for(terminal, verb.__name__)
        terminal.truncate(0)  # what comes now is asked for with a recording, and no observers yet
        terminal.seek(0)
        wait_for(terminal, f"\r{verb.__name__} (")
        install(recording)

    monkeypatch.setattr(recorder, "_install", slowly)
    with recorder:
        torch.ones(2) + 1
    assert last_line(terminal) == ""


def test_a_recording_that_fails_to_begin_leaves_no_line(terminal, monkeypatch):
    recorder = nbkit.optrace()
    monkeypatch.setattr(recorder, "_begin", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        recorder.__enter__()
    assert not [thread for thread in threading.enumerate() if thread.name == "nbkit progress"]


def test_repeated_runs_are_counted(terminal):
    def step() -> None:
        wait_for(terminal, "optime: run 2 of 3") if len(runs) == 1 else None
        runs.append(None)

    runs: list[None] = []
    nbkit.optime(repeats=3).run(step)
    assert len(runs) == 3


def test_writing_a_report_and_saving_say_so(terminal, tmp_path, monkeypatch):
    from nbkit.trace import storage
    from nbkit.views.report import opreport

    with nbkit.optrace() as trace:
        torch.ones(2) + 1
    made, section, write = opreport.report_page, opreport.trace_section, storage.write

    def waiting_page(*args):
        wait_for(terminal, "opreport: writing 2 traces to r.html (0 s)")
        return made(*args)

    def waiting_section(chapter, *args, **options):
        if chapter.title.startswith("2. "):
            wait_for(terminal, "opreport: writing 2 traces to r.html, 1 done (")
            wait_for(terminal, " left)")
        return section(chapter, *args, **options)

    def waiting_write(*args):
        wait_for(terminal, "saving t: ")
        return write(*args)

    monkeypatch.setattr(progress, "LEAST_S", 0.0)
    monkeypatch.setattr(opreport, "report_page", waiting_page)
    monkeypatch.setattr(opreport, "trace_section", waiting_section)
    monkeypatch.setattr(storage, "write", waiting_write)
    nbkit.opreport(trace, trace, path=tmp_path / "r.html")
    trace.save(tmp_path / "t")


@pytest.mark.parametrize("fails", [False, True])
def test_timing_a_step_says_which_run_it_is_until_the_end(terminal, fails):
    def step() -> None:
        wait_for(terminal, "run 1 of 1")
        if fails:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") if fails else nullcontext():
        nbkit.optime(repeats=1).run(step)
    assert not [thread for thread in threading.enumerate() if thread.name == "nbkit progress"]
    assert last_line(terminal) == ""


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (0.25, "30 s, about 1 min 30 s left"),
        (1.0, "30 s, about 0 s left"),
        (0.01, "30 s"),
        (None, "30 s"),
        (7.0, "30 s"),
    ],
)
def test_time_left_is_told_where_the_work_is_known(done, told, terminal, monkeypatch):
    clock = iter([100.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock, 130.0))
    with Progress(lambda: "work", done=lambda: done):
        wait_for(terminal, f"work ({told})")


def test_a_step_that_was_recorded_before_says_what_time_is_left(terminal, monkeypatch):
    monkeypatch.setattr(progress, "LEAST_S", 0.0)
    left = torch.ones(2, 2)

    def step(waits: str) -> None:
        for number in range(8):
            left @ left + number
            if number == 5 and waits:
                wait_for(terminal, waits)

    def other() -> None:
        for _ in range(5):
            left.exp()
        sleep(0.2)

    for work, waits in ((step, ""), (step, " s left)")):
        with nbkit.opdiff():
            work(waits)
    terminal.truncate(0)
    with nbkit.opdiff():
        other()
    assert "left" not in terminal.getvalue()


def test_an_estimate_needs_the_same_ops(monkeypatch):
    from nbkit.capture.recorder import recorder

    monkeypatch.setattr(recorder, "RECENT", [(10, {0: "a", 3: "b", 6: "c"}), (20, {0: "a", 4: "b", 8: "d"})])

    def part(*names):
        ops = SimpleNamespace(row_count=len(names), value=lambda row, _: names[row])
        return recorder.part_done(ops)

    assert part("a", "", "", "b", "", "", "c", "", "") == 0.8
    assert part("a", "", "", "", "b", "", "", "", "d", "", "") == 0.5
    assert part("a", "", "", "b", "", "", "x", "", "") is None
    assert part("a", "", "", "b", "") is None


def test_between_start_and_stop_nothing_is_shown(terminal):
    recorder = nbkit.optrace().start()
    sleep(0.1)
    assert terminal.getvalue() == ""
    recorder.stop()
    with Progress(lambda: "work"):
        wait_for(terminal, "\rwork (0 s)")
