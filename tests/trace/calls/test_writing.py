"""When captured calls reach the disk while a step runs."""

from array import array
from contextlib import suppress
from threading import Event, Timer
from zlib import crc32

import numpy as np
import pytest
from safetensors.numpy import load_file

from nbkit.capture.native.library import library
from nbkit.trace.calls import shards, writing
from nbkit.trace.calls.file_writer import PythonFileWriter
from nbkit.trace.calls.layout import CALLS
from nbkit.trace.calls.shards import BLOCK
from nbkit.trace.calls.writing import EVERY_S, CallWriter, FullError


def wait(writer):
    for one in writer._waiting:
        with suppress(OSError):
            one.job.result()


@pytest.fixture(params=["python", "library"])
def start(request):
    if request.param == "python":
        return PythonFileWriter
    if library() is None:
        pytest.skip("needs the native recorder")
    return library().FileWriter


def test_what_waits_is_written_once_in_a_while_not_with_every_call(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(writing, "monotonic", lambda: clock[0])
    writer, written = CallWriter(tmp_path / "calls", {}, 2**20), []
    for number, at in enumerate((0.5, 1.5, 1.75, 2.25, 2.75)):
        clock[0] = at * EVERY_S
        writer.add({"content": writer.put(np.full(8, number, np.uint8))})
        writer.flush_once_in_a_while()
        path = writer.folder / CALLS
        wait(writer)
        written.append((len(writer.shards), len(path.read_bytes().splitlines()) if path.is_file() else 0))
    assert written == [(1, 0), (1, 2), (2, 2), (2, 2), (2, 5)]


def test_a_large_content_has_a_file_of_its_own(tmp_path):
    writer, data = CallWriter(tmp_path / "calls", {}, 2**30), np.arange(BLOCK + 8, dtype=np.uint64).view(np.uint8)
    small = writer.put(np.ones(8, np.uint8))
    assert writer.put(data) == (name := writer.put(data.copy()))
    writer.put(np.zeros(8, np.uint8))
    writer.finish()
    shards = [load_file(path) for path in sorted(writer.folder.glob("values-*"))]
    assert [[key.partition("-")[0] for key in shard] for shard in shards] == [[small], [name], ["2"]]
    ((key, value),) = shards[1].items()
    assert value.tobytes() == data.tobytes() and key == f"{name}-{crc32(data.data):08x}"


def test_contents_are_the_same_while_they_wait_and_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "BLOCK", 100)
    writer = CallWriter(tmp_path / "calls", {}, 2**30)
    contents = [np.full(30, number, np.uint8) for number in range(10)]
    names = [writer.put(data) for data in contents]
    assert [writer.put(data) for data in contents] == names == [str(number) for number in range(10)]
    writer.finish()
    assert [writer.put(data) for data in contents] == names
    assert [writer.stored(int(name)).tobytes() for name in names] == [data.tobytes() for data in contents]
    assert len(writer.shards) == 4


def test_contents_with_the_same_sum_are_told_apart(tmp_path):
    writer = CallWriter(tmp_path / "calls", {}, 2**30)
    one, other = np.arange(4, dtype=np.int64).view(np.uint8), np.arange(3, -1, -1, dtype=np.int64).view(np.uint8)
    assert [writer.put(data) for data in (one, other, one, other)] == ["0", "1", "0", "1"]


def test_as_many_calls_are_added_as_fit(tmp_path):
    writer = CallWriter(tmp_path / "calls", {}, 200)
    writer.put(np.zeros(50, np.uint8))
    line = 40
    assert writer.add_lines(b"1" * 9 * line, range(line, 10 * line, line)) == 3 and writer.size_bytes == 50 + 3 * line
    assert writer.add_lines(b"1" * line, (line,)) == 0
    with pytest.raises(FullError):
        writer.add({})
    with pytest.raises(FullError):
        writer.put(np.ones(31, np.uint8))
    writer.put(np.ones(30, np.uint8))
    writer.finish()
    assert writer.size_bytes == 200 and writer.written_calls == 3
    assert (tmp_path / "calls" / CALLS).read_bytes() == b"1" * 3 * line


def test_the_library_fills_no_more_than_calls_leave(tmp_path):
    """It adds to the memory of what is being filled, of which `filled` says how far it may go."""
    writer = CallWriter(tmp_path / "calls", {}, 300)
    writer.put(np.zeros(50, np.uint8))
    writer.add_lines(b"1" * 100, (100,))
    count, used, limit = writer.shards.filling.filled
    assert (count, used, limit) == (1, 50, 300 - 100)


def test_the_step_waits_when_the_disk_is_slower(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "BLOCK", 100)
    monkeypatch.setattr(writing, "MOST_WAITING", 150)
    begun, written = Event(), Event()

    class Slow(PythonFileWriter):
        def _write(self, *arguments):
            begun.set()
            written.wait(60)
            return super()._write(*arguments)

    writer = CallWriter(tmp_path / "calls", {}, 2**30, Slow)
    writer.put(np.zeros(100, np.uint8))
    writer.put(np.ones(100, np.uint8))  # has the first one written
    assert begun.wait(60) and writer.stored(0).tobytes() == bytes(100)
    Timer(0.2, written.set).start()
    writer.put(np.full(100, 2, np.uint8))
    assert written.is_set()
    writer.finish()
    assert writer.stored(0).tobytes() == bytes(100)


def test_what_a_thread_could_not_write_is_told_at_the_next_content_and_at_the_end(tmp_path, monkeypatch, start):
    monkeypatch.setattr(shards, "BLOCK", 100)
    writer = CallWriter(tmp_path / "calls", {}, 2**30, start)
    writer.add({"content": writer.put(np.zeros(100, np.uint8))})
    writer.flush()
    wait(writer)
    (writer.folder / "values-00001.safetensors").mkdir()  # a folder has the name
    writer.add({"content": writer.put(np.ones(100, np.uint8))})
    with pytest.raises(OSError, match="Is a directory"):
        for number in range(2, 20):
            writer.add({"content": writer.put(np.full(100, number, np.uint8))})
            wait(writer)
    with pytest.raises(OSError, match="Is a directory"):
        writer.finish()
    assert writer.written_calls == 1 == len((writer.folder / CALLS).read_bytes().splitlines())
    assert not [*writer.folder.glob("*.part")] and not (writer.folder / "values-00002.safetensors").exists()


def test_calls_that_cannot_be_added_are_told(tmp_path, start):
    writer = CallWriter(tmp_path / "calls", {}, 2**30, start)
    (writer.folder / CALLS).mkdir()
    writer.add({})
    with pytest.raises(OSError, match="Is a directory"):
        writer.finish()
    assert writer.written_calls == 0


def test_a_writer_that_is_dropped_has_written_what_it_was_given(tmp_path, start):
    writer = CallWriter(tmp_path / "calls", {}, 2**30, start)
    writer.add({"content": writer.put(np.zeros(2**20, np.uint8))})
    writer.flush()
    thread = writer._thread
    del writer
    thread.shutdown()
    assert [file.name for file in sorted((tmp_path / "calls").iterdir())] == [
        CALLS,
        "capture.json",
        "values-00000.safetensors",
    ]


def test_lines_are_in_the_order_of_the_calls_though_files_are_not_written_as_fast(tmp_path, start):
    files, block = start(), memoryview(bytes(2**22))
    names = [tmp_path / f"values-{number:05}.safetensors" for number in range(30)]
    jobs = [
        files.submit(
            (name, number, block, array("q", [8 if number % 3 else len(block)])), tmp_path / CALLS, [b"%d\n" % number]
        )
        for number, name in enumerate(names)
    ]
    files.shutdown()
    assert all(job.done() and job.result() > 8 for job in jobs)
    assert (tmp_path / CALLS).read_bytes().split() == [b"%d" % number for number in range(30)]
    assert [next(iter(load_file(name))).partition("-")[0] for name in names] == [str(number) for number in range(30)]
    assert [name.stat().st_size for name in names[:2]] == [jobs[0].result() + len(block), jobs[1].result() + 8]


def test_no_call_is_added_after_contents_that_could_not_be_written(tmp_path, start):
    files, block = start(), memoryview(bytes(2**20))
    names = [tmp_path / f"values-{number:05}.safetensors" for number in range(20)]
    names[7].mkdir()
    jobs = [
        files.submit(
            (name, number, block, array("q", [8 if number == 7 else len(block)])), tmp_path / CALLS, [b"%d\n" % number]
        )
        for number, name in enumerate(names)
    ]
    files.shutdown()
    for job in jobs[7:]:
        with pytest.raises(IsADirectoryError):
            job.result()
    assert (tmp_path / CALLS).read_bytes().split() == [b"%d" % number for number in range(7)]


def test_memory_that_was_written_is_filled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_kept", [])
    writer, addresses = CallWriter(tmp_path / "calls", {}, 2**30), []
    sizes = [2 * BLOCK, 2 * BLOCK - 8, 5 * BLOCK, 8, 4 * BLOCK]
    for size in sizes:
        writer.put(np.full(size, size % 251, np.uint8))
        block = np.frombuffer(writer.shards.filling.block, np.uint8)
        assert len(block) == max(size, BLOCK)
        addresses.append(block.ctypes.data)
        writer.flush()
        wait(writer)
        writer.flush()  # takes back what is written
    assert addresses[0] == addresses[1] == addresses[3] != addresses[2] == addresses[4]
    writer.finish()
    for number, size in enumerate(sizes):
        assert writer.stored(number).tobytes() == bytes([size % 251]) * size


def test_little_memory_waits_for_other_contents(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "MOST_FREE", 2 * BLOCK)
    writer = CallWriter(tmp_path / "calls", {}, 2**30)
    for count in (1, 3, 5):  # none fits in what another one had
        writer.put(np.full(count * BLOCK, count, np.uint8))
        writer.flush()
        wait(writer)
        writer.flush()
        assert sum(map(len, writer.shards._free)) <= 2 * BLOCK
    writer.finish()


@pytest.mark.parametrize("memory", [shards._memory, lambda size: np.empty(size, np.uint8)], ids=["pages", "numpy"])
def test_some_memory_waits_for_the_next_recording(tmp_path, monkeypatch, memory):
    monkeypatch.setattr(shards, "_kept", [])
    monkeypatch.setattr(shards, "_memory", memory)

    def addresses(name, *values):
        writer, found = CallWriter(tmp_path / name, {}, 2**30), []
        for value in values:
            size = (3 if value == 1 else 1) * BLOCK
            writer.put(np.full(size, value, np.uint8))
            found.append(np.frombuffer(writer.shards.filling.block, np.uint8).ctypes.data)
            writer.flush()
        writer.finish()
        assert [writer.stored(number)[-1] for number in range(len(values))] == [*values]
        return found

    first = addresses("first", 0, 1, 2, 3)
    assert BLOCK <= sum(map(len, shards._kept[0])) <= 2 * BLOCK
    assert addresses("second", 4)[0] in (first[0], first[2], first[3])
