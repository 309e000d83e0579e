import pandas as pd

from nbkit.schema import OPS, TEXT
from nbkit.step.step import Step
from nbkit.trace.trace import step_of
from tests.support.fakes import make_tensors, make_trace, small_trace


def step(*rows, storages=None):
    """Makes a step of (op_id, role, tensor_id), each tensor in memory of its number or of `storages`."""
    tensors = make_tensors(*rows)
    if storages is not None:
        tensors["storage_id"] = pd.array(storages, "Int64")
    return Step(OPS.frame(), tensors)


def makers(step):
    """Returns the op that each input comes from; -1 where it was there before."""
    return [-1 if row < 0 else int(step.op_ids[row]) for row in step.makers[~step.is_output].tolist()]


def test_a_tensor_without_a_storage_shares_memory_with_no_storage():
    made = step((0, "input", 3), (0, "output", 2), (1, "input", 0), (1, "input", 3), storages=[None, 2, None, None])
    assert made.memory.tolist() == [-4, 2, -1, -4]


def test_a_view_is_not_written_and_what_an_op_changed_is():
    rows = ((0, "input", 1), (0, "output", 2), (1, "input", 1), (1, "output", 1), (2, "output", 3))
    assert step(*rows, storages=[7, 7, 7, 7, 8]).is_written.tolist() == [False, False, False, True, True]


def test_the_maker_is_the_last_op_before_that_gave_the_tensor():
    rows = ((0, "output", 7), (1, "input", 7), (2, "output", 7), (3, "input", 7), (4, "input", 8))
    assert makers(step(*rows)) == [0, 2, -1]
    assert makers(step_of(small_trace())) == [-1, -1, 1, 2, 2, 5, -1, 6]


def test_an_op_in_place_reads_the_old_value_and_makes_the_new_one():
    made = step((0, "output", 7), (1, "input", 7), (1, "output", 7), (2, "input", 7))
    assert makers(made) == [0, 1]
    assert made.readers == {0: [1], 2: [3]}


def test_what_is_read_comes_from_the_last_write_through_any_view_or_from_the_view():
    rows = [(0, "output", 1), (1, "input", 1), (1, "output", 2), (2, "input", 2), (2, "output", 2), (3, "input", 1)]
    made = step(*rows, storages=[5] * 6)
    assert makers(made) == [0, 1, 0]
    assert made.writers.tolist()[1::2] == [0, 0, 4]
    assert made.sources.tolist()[1::2] == [0, 2, 4]


def test_ops_have_the_rows_of_their_tensors_in_call_order_whatever_the_order_of_rows():
    made = step((4, "output", 1), (2, "output", 0), (2, "input", 9), (2, "output", 3))
    assert list(made.calls()) == [(2, [2], [1, 3]), (4, [], [0])]
    assert [made.rows(op_id).tolist() for op_id in (2, 3, 4)] == [[1, 2, 3], [], [0]]


def test_a_step_without_tensors_has_no_ops_with_such():
    empty = step()
    assert list(empty.calls()) == empty.makers.tolist() == empty.sources.tolist() == empty.rows(0).tolist() == []
    assert not len(empty.is_written) and not empty.readers


def test_a_trace_has_one_step_until_it_has_other_frames():
    trace = small_trace()
    first = step_of(trace)
    assert first is step_of(trace) and first.tensors is trace.tensors
    trace.frames["tensors"] = make_tensors()
    assert not len(step_of(trace).tensors)
    del trace.frames["tensors"]
    assert not len(step_of(trace).tensors) and len(step_of(trace).ops) == len(trace.ops)
    assert step_of(make_trace(trace.ops)) is not first


def test_a_record_has_the_shape_decoded_and_no_name_where_there_is_none():
    tensors = make_tensors((0, "input", 3), (1, "output", 2)).assign(storage_id=pd.array([None, 5], "Int64"))
    tensors = tensors.assign(shape=["[2, null]", "[]"], name=pd.Series(["w", None], dtype=TEXT))
    first, second = Step(OPS.frame(), tensors).records()
    assert (first.row, first.op_id, first.role, first.tensor_id, first.memory) == (0, 0, "input", 3, -4)
    assert (first.shape, first.name) == ((2, -1), "w")
    assert (second.row, second.role, second.memory, second.shape, second.name) == (1, "output", 5, (), None)


def test_the_bytes_of_a_tensor_are_zero_where_they_are_not_known():
    tensors = make_tensors((0, "input", 3), (1, "output", 2)).assign(size_bytes=pd.array([None, 8], "Int64"))
    assert Step(OPS.frame(), tensors).sizes.tolist() == [0, 8]
