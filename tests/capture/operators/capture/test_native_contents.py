"""Which contents the library takes for the same, and where it stores others: in the memory that Python then writes."""

import numpy as np
import pytest

from nbkit.capture.native.library import library
from nbkit.trace.calls import shards
from nbkit.trace.calls.shards import MOST_CONTENTS
from nbkit.trace.calls.writing import CallWriter, FullError

pytestmark = pytest.mark.skipif(library() is None, reason="needs the native recorder")


@pytest.fixture
def writer(tmp_path):
    return CallWriter(tmp_path / "calls", {}, 2**30)


def kept(writer):
    """Returns the contents of the folder by their names."""
    return {str(number): bytes(writer.stored(number)) for number in range(sum(one.filled[0] for one in writer.shards))}


@pytest.mark.parametrize("size", [1, 7, 8, 127, 128, 129, 300])
def test_a_content_that_differs_in_a_byte_is_another_one(writer, size):
    contents, data = library().Contents(writer, None), np.random.default_rng(0).integers(0, 256, size, np.uint8)
    name = contents.put(data)
    for place in range(size):
        other = data.copy()
        other[place] ^= 1
        assert contents.put(other) != name
    assert contents.put(data.copy()) == name == "0"
    assert len(kept(writer)) == size + 1


def test_contents_with_the_same_sum_are_told_apart(writer):
    contents = library().Contents(writer, None)
    one, other = np.arange(4, dtype=np.int64), np.arange(3, -1, -1, dtype=np.int64)
    assert [contents.put(data) for data in (one, other, one, other)] == ["0", "1", "0", "1"]


def test_contents_are_the_same_before_and_after_they_are_written(writer, monkeypatch):
    monkeypatch.setattr(shards, "BLOCK", 100)
    contents = library().Contents(writer, None)
    given = [np.full(size, size, np.uint8) for size in (30, 40, 50, 250, 0, 20)]
    names = [contents.put(data) for data in given]
    assert names == [contents.put(data) for data in given] == list("012345")
    writer.finish()
    assert [contents.put(data) for data in given] == names
    assert kept(writer) == {name: data.tobytes() for name, data in zip(names, given, strict=True)}
    assert len(list(writer.folder.glob("values-*"))) == len(writer.shards) == 4


def test_python_and_the_library_fill_the_same_memory(writer):
    contents = library().Contents(writer, None)
    names = [contents.put(b"a"), writer.put(np.frombuffer(b"bc", np.uint8)), contents.put(b"def")]
    writer.flush()
    names.append(contents.put(b"g"))
    assert kept(writer) == dict(zip(names, (b"a", b"bc", b"def", b"g"), strict=True)) and len(writer.shards) == 2


def test_a_file_has_no_more_contents_than_its_list_of_places(writer):
    contents = library().Contents(writer, None)
    for number in range(MOST_CONTENTS + 1):
        contents.put(number.to_bytes(4, "little"))
    assert [one.filled[0] for one in writer.shards] == [MOST_CONTENTS, 1]


def test_what_does_not_fit_is_told(tmp_path):
    writer = CallWriter(tmp_path / "calls", {}, 100)
    contents = library().Contents(writer, None)
    contents.put(bytes(60))
    writer.add_lines(b"1\n", (2,))
    left = 100 - writer.size_bytes
    with pytest.raises(FullError):
        contents.put(bytes(left + 1))
    contents.put(bytes(left))
    assert writer.size_bytes == 100
