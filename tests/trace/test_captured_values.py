"""Tests captured calls in files: the same after a round trip, and a damaged file is reported."""

import numpy as np
import pytest

from nbkit import Trace, TraceError
from nbkit.trace.calls.layout import CALLS, HEAD, IN_TRACE
from nbkit.trace.captured_folder import read_captured, write_captured
from nbkit.trace.captured_values import CapturedCall, CapturedResult, CapturedTensor
from tests.support.fakes import small_trace

TENSOR = CapturedTensor("bfloat16", (2,), (1,), "cpu", b"\x80\x3f\x00\x40")
RESULT = CapturedResult(0, "output", 0, "bfloat16", (2,), (2,), 0.5, np.array([1.0, np.nan]), np.array([1.5, np.inf]))
CALL = CapturedCall(
    3, "aten.exp.default", "cpu", [{"tensor": 0}], {"out": None}, (TENSOR,), (RESULT,), ("import x",), "n"
)


def same(left: CapturedCall, right: CapturedCall) -> bool:
    rest = [{**vars(one), "results": None} for one in (left, right)]
    results = [[{**vars(one), "actual": None, "expected": None} for one in call.results] for call in (left, right)]
    arrays = [[side for one in call.results for side in (one.actual, one.expected)] for call in (left, right)]
    is_equal = all(np.array_equal(a, b, equal_nan=True) and a.dtype == b.dtype for a, b in zip(*arrays, strict=True))
    return rest[0] == rest[1] and results[0] == results[1] and is_equal


def test_a_round_trip_gives_the_same_calls(tmp_path):
    integers = CapturedResult(1, "input", 2, "int64", (), (1,), None, np.array([7]), np.array([8]))
    call = CapturedCall(**{**vars(CALL), "op_id": 5, "results": (RESULT, integers)})
    write_captured(tmp_path, {3: CALL, 5: call}, small_trace().ops, {})
    back = read_captured(tmp_path)
    assert list(back) == [3, 5]
    assert same(back[3], CALL) and same(back[5], call)


def test_size_counts_inputs_and_both_sides():
    assert CALL.size_bytes == 4 + 16 + 16


def test_a_trace_is_saved_with_its_values_only_if_asked(tmp_path):
    trace = Trace(small_trace().frames, {}, {3: CALL})
    assert Trace.load(trace.save(tmp_path / "bare")).captured == {}
    assert not (tmp_path / "bare" / IN_TRACE).exists()
    assert same(Trace.load(trace.save(tmp_path / "full", values="captured")).captured[3], CALL)


def test_values_of_another_kind_are_refused(tmp_path):
    with pytest.raises(TraceError, match="values='all' cannot be saved; give 'captured'"):
        small_trace().save(tmp_path / "t", values="all")


def cut(file):
    file.write_bytes(file.read_bytes()[:-9])


def flipped(file):
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda calls: flipped(calls / "values-00000.safetensors"), "in calls, its values '2' are damaged"),
        (lambda calls: (calls / "values-00000.safetensors").unlink(), "in calls, its values '0' are not in the folder"),
        (lambda calls: cut(calls / CALLS), "in calls, its record is cut off or damaged"),
        (lambda calls: (calls / HEAD).write_text("[1]"), "capture.json is of another format"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, damage, message):
    folder = Trace(small_trace().frames, {}, {3: CALL}).save(tmp_path / "t", values="captured")
    damage(folder / IN_TRACE)
    with pytest.raises(TraceError, match=message) as error:
        Trace.load(folder)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)
