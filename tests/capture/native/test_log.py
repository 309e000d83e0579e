"""Tests records that are kept flat and read as columns: in Python, and in the log of the native recorder."""

import numpy as np
import pytest

from nbkit.capture.native.library import library
from nbkit.capture.raw.flat_list import FlatList
from nbkit.capture.raw.recording import OP_INTEGERS, OP_OBJECTS, THREAD_TENSORS, OpRecord
from nbkit.capture.raw.tensor_registry import FIELDS


class Uncomparable:
    """Refuses to be compared or hashed, as a user's object may."""

    __hash__ = None

    def __eq__(self, other):
        raise TypeError("not comparable")


@pytest.fixture(params=["python", "native"])
def ops(request):
    kind = FlatList if request.param == "python" else library().OpLog
    return kind(OP_OBJECTS, OP_INTEGERS)


def record(name, number):
    return OpRecord(name, (), None, None, None, *range(number, number + len(OP_INTEGERS)))


def test_columns_take_every_field_in_turn(ops):
    one, other = Uncomparable(), Uncomparable()
    names = [(one, other, None)[row * row % 7 % 3] for row in range(1200)]  # more than a block of the library's
    assert [ops.add(record(name, row - 2**40)) for row, name in enumerate(names)] == [*range(1200)]
    assert ops.row_count == 1200
    assert ops.integers("start").tolist() == [row - 2**40 + OP_INTEGERS.index("start") for row in range(1200)]
    numbers, distinct = ops.objects("name")
    assert numbers.dtype == np.int64
    assert [id(distinct[number]) for number in numbers] == [*map(id, names)]
    assert [*map(id, distinct)] == [*dict.fromkeys(map(id, names))]


def test_a_place_is_taken_and_written_later(ops):
    assert (ops.reserve(), ops.add(record("second", 10))) == (0, 1)
    assert (ops.value(0, "name"), ops.value(0, "end"), ops.value(1, "parent")) == (None, 0, 10)
    ops.put(0, record("first", 0))
    assert ops.objects("name")[1] == ["first", "second"]
    ops.clear_row(1)
    assert (ops.value(1, "name"), ops.integers("parent").tolist()) == (None, [0, 0])


def test_no_record_has_no_columns(ops):
    numbers, distinct = ops.objects("name")
    assert (ops.row_count, len(ops.integers("node")), len(numbers), distinct) == (0, 0, 0, [])


@pytest.mark.parametrize("value", [None, "x", 2**70])
def test_what_is_no_int64_is_refused(ops, value):
    with pytest.raises((TypeError, ValueError, OverflowError, RuntimeError)):
        ops.add(("op", (), None, None, None, value, *[0] * (len(OP_INTEGERS) - 1)))
        ops.integers("parent")


def test_columns_can_be_written_to(ops):
    ops.add(record("op", 0))
    column = ops.integers("parent")
    column[0] = 5
    assert (column.tolist(), ops.integers("parent").tolist()) == ([5], [0])


def test_the_library_has_the_same_fields():
    native = library()
    for kind, objects, integers in (
        (native.OpLog, OP_OBJECTS, OP_INTEGERS),
        (native.TensorLog, (), FIELDS),
        (native.NumberLog, (), THREAD_TENSORS),
    ):
        assert kind(objects, integers).row_count == 0
        with pytest.raises(ValueError, match="other fields"):
            kind((*objects, "more"), integers)
        with pytest.raises(IndexError, match="no such row"):
            kind(objects, integers).clear_row(0)
