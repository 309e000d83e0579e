"""Which contents of memory are stored anew, in Python's own way, which stands where there is no library."""

import numpy as np
import pytest
import torch

from nbkit.capture.calls.encode import NotCapturedError
from nbkit.capture.calls.memory import (
    MOST_CHECKED,
    MOST_UNUSED,
    SMALL,
    TINY,
    KnownContents,
    layout_parts,
    memory_of,
    state_bytes,
)

LARGE = 4 * TINY


class Stored(list):
    """Contents in the order in which they were stored, each named by its number."""

    def put(self, data):
        self.append(data.tobytes())
        return str(len(self) - 1)


@pytest.fixture
def stored():
    return Stored()


def bytes_of(count):
    return torch.arange(count).to(torch.uint8)


def test_memory_is_read_as_bytes_from_anywhere():
    memory = memory_of(bytes_of(200))
    assert memory.size_bytes == 200 and memory.device == torch.device("cpu")
    assert memory.read((64, 3)).tolist() == [64, 65, 66] and memory.read((0, 0)).tolist() == []


@pytest.mark.parametrize("made", [torch.zeros(3).to_sparse, lambda: torch.empty(3, device="meta")])
def test_what_has_no_memory_of_its_own_is_refused(made):
    with pytest.raises(NotCapturedError, match="it has tensors without memory of their own"):
        memory_of(made())


def test_large_memory_is_stored_once_until_its_bytes_are_others(stored):
    tensor, contents = bytes_of(LARGE), KnownContents(stored.put)
    memory, span = contents.memory(tensor), (0, LARGE)
    assert not contents and [contents.name(memory, span) for _ in range(2)] == ["0", "0"] and contents
    tensor.numpy()[5] += 1  # by no op
    assert [contents.name(memory, span) for _ in range(2)] == ["1", "1"]
    contents.changed(memory)
    assert contents.name(memory, span) == "2"
    assert stored[1] == stored[2] == tensor.numpy().tobytes() != stored[0]


def test_another_part_is_another_content(stored):
    contents = KnownContents(stored.put)
    memory = contents.memory(bytes_of(LARGE))
    assert [contents.name(memory, (start, 2 * TINY)) for start in (0, 64, 0)] == ["0", "1", "0"]


def test_small_memory_is_handed_over_each_time(stored):
    contents = KnownContents(stored.put)
    memory = contents.memory(bytes_of(TINY))
    assert [contents.name(memory, (0, TINY)) for _ in range(2)] == ["0", "1"] and not contents


def test_another_storage_with_the_same_key_is_not_taken_for_it(stored):
    contents, one = KnownContents(stored.put), memory_of(bytes_of(LARGE))
    contents.name(one, (0, LARGE))
    other = memory_of(torch.zeros(LARGE, dtype=torch.uint8))._replace(key=one.key)
    assert not contents.is_whole_known(other) and contents.name(other, (0, LARGE)) == "1"


def test_a_reference_stands_for_what_need_not_be_stored(stored):
    tensor = bytes_of(LARGE)
    asked = []

    def reference(address, size, data):
        asked.append((address, size, len(data)))
        return "parameter" if size == LARGE else None

    contents = KnownContents(stored.put, reference)
    assert contents.name(contents.memory(tensor), (0, LARGE)) == "parameter" and stored == []
    assert contents.name(contents.memory(bytes_of(8)), (0, 8)) == "0"
    assert asked[0] == (tensor.data_ptr(), LARGE, LARGE)


def test_the_whole_is_known_once_it_is_stored_as_it_is(stored):
    tensor, contents = bytes_of(LARGE), KnownContents(stored.put)
    memory = contents.memory(tensor)
    contents.name(memory, (0, 2 * TINY))
    assert not contents.is_whole_known(memory)
    contents.name(memory, (0, LARGE))
    assert contents.is_whole_known(memory)
    tensor.numpy()[0] = 9
    assert not contents.is_whole_known(memory)


@pytest.mark.parametrize(
    ("size", "used", "is_whole", "is_known", "expected"),
    [
        (SMALL, 64, False, False, "all"),
        (SMALL + 64, 64, True, False, "all"),
        (SMALL * MOST_UNUSED, SMALL, False, False, "all"),
        (SMALL * MOST_UNUSED + 64, SMALL, False, False, "used"),
        (SMALL * MOST_UNUSED + 64, SMALL, False, True, "all"),
        (SMALL * MOST_CHECKED + 64, SMALL, False, True, "used"),
    ],
)
def test_of_large_memory_that_a_call_hardly_uses_a_part_is_stored(stored, size, used, is_whole, is_known, expected):
    contents = KnownContents(stored.put)
    memory = contents.memory(torch.zeros(size, dtype=torch.uint8))
    if is_known:
        contents.name(memory, (0, size))
    span = contents.best_span(memory, (0, used), is_whole=is_whole)
    assert span == ((0, size) if expected == "all" else (0, used))


def test_a_layout_without_parts_is_refused():
    assert [part.tolist() for part in layout_parts(torch.eye(2).to_sparse())] == [[[0, 1], [0, 1]], [1.0, 1.0]]
    with pytest.raises(NotCapturedError, match="it has tensors of the layout strided"):
        layout_parts(torch.ones(2))


def test_bytes_of_a_generator_are_its_state():
    generator = torch.Generator().manual_seed(7)
    assert np.array_equal(state_bytes(generator), generator.get_state().numpy())
