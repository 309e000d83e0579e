"""When captured calls reach the disk while a step runs."""

import numpy as np
from safetensors.numpy import load_file

from nbkit.trace.calls import writing
from nbkit.trace.calls.layout import CALLS
from nbkit.trace.calls.writing import EVERY_S, LARGE, CallWriter


def test_what_waits_is_written_once_in_a_while_not_with_every_call(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(writing, "monotonic", lambda: clock[0])
    writer, written = CallWriter(tmp_path / "calls", {}, 2**20), []
    for number, at in enumerate((0.5, 1.5, 1.75, 2.25, 2.75)):
        clock[0] = at * EVERY_S
        writer.add({"content": writer.put(np.full(8, number, np.uint8))})
        path = writer.folder / CALLS
        written.append((writer.shards, len(path.read_bytes().splitlines()) if path.is_file() else 0))
    assert written == [(0, 0), (1, 2), (1, 2), (1, 2), (2, 5)]


def test_a_large_content_is_written_at_once_and_only_once(tmp_path):
    writer, data = CallWriter(tmp_path / "calls", {}, 2**30), np.ones(LARGE, np.uint8)
    assert writer.put(data) == (name := writer.put(data.copy()))
    (path,) = writer.folder.glob("values-*")
    assert {key: value.tobytes() for key, value in load_file(path).items()} == {name: data.tobytes()}
