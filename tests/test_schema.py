"""Tests frames: exactly the promised columns, dtypes and index; wrong ones are refused in one sentence."""

import numpy as np
import pandas as pd
import pytest

from nbkit import SchemaError, Trace
from nbkit.compat.text_dtype import READS_TEXTS_AS_OBJECTS, dtype_name
from nbkit.schema import DTYPES, MODULES, OPS, TABLES, TENSORS, nullable
from tests.support.fakes import make_modules, make_ops, make_tensors

ROW = {
    "op_id": 0,
    "level": "aten",
    "op": "aten.add.Tensor",
    "phase": "forward",
    "step": 0,
    "device": "cpu",
    "thread": 0,
    "start_us": 0.5,
    "total_time_us": 1.0,
    "self_time_us": 1.0,
}


def test_every_column_has_a_dtype_a_meaning_and_its_unit():
    for table in TABLES.values():
        assert len(table.names) == len(set(table.names))
        for column in table.columns:
            assert column.dtype in DTYPES
            assert column.meaning
            assert not column.name.endswith(("_percent", "_ms", "_mb"))


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_an_empty_frame_has_all_columns_and_dtypes(table):
    frame = table.frame()
    assert [dtype_name(dtype) for dtype in frame.dtypes] == [column.dtype for column in table.columns]
    assert table.check(frame) is frame
    assert len(frame) == 0


def test_rows_and_columns_give_the_same_frame():
    rows = OPS.frame([ROW, {**ROW, "op_id": 1, "parent_id": 0}])
    columns = OPS.frame({**{name: [value] * 2 for name, value in ROW.items()}, "op_id": [0, 1], "parent_id": [None, 0]})
    pd.testing.assert_frame_equal(rows, columns)
    assert rows["parent_id"].isna().tolist() == [True, False]
    assert rows["parent_id"].dtype == "Int64"


def test_what_is_absent_is_null_and_never_a_stand_in():
    frame = OPS.frame([ROW])
    assert (
        frame[["parent_id", "module", "module_call", "forward_op_id", "stream", "flops", "source"]]
        .isna()
        .all(axis=None)
    )


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([{**ROW, "time": 1}], "ops has no column 'time'; its columns are op_id, parent_id"),
        ([{"op_id": 0}], r"ops.step \(int64\) has no null, so it must be given"),
        ([{**ROW, "step": None}], "ops.step cannot be read as int64"),
        ([{**ROW, "start_us": "soon"}], "ops.start_us cannot be read as float64"),
        ([{**ROW, "parent_id": 1.5}], "ops.parent_id cannot be read as Int64"),
    ],
)
def test_what_does_not_fit_is_refused(rows, text):
    with pytest.raises(SchemaError, match=text):
        OPS.frame(rows)


def test_a_column_of_a_frame_is_one_whatever_pandas_holds_it_in():
    held = {name: pd.Series([value]).array for name, value in ROW.items()}
    assert OPS.frame(held).equals(OPS.frame([ROW]))
    numbers = np.arange(1, 2)
    assert np.shares_memory(OPS.frame({**held, "op_id": numbers})["op_id"].to_numpy(), numbers)


@pytest.mark.parametrize(
    "held", [lambda value: [value], lambda value: pd.Series([value]).array, lambda value: pd.Series([value]).to_numpy()]
)
def test_each_column_of_a_frame_can_be_written_to(held):
    frame = OPS.frame({name: held(value) for name, value in ROW.items()})
    for column in OPS.columns:
        frame.loc[0, column.name] = {"str": "text", "bool": True}.get(column.dtype, 7)
        assert frame[column.name].tolist() == [{"str": "text", "bool": True}.get(column.dtype, 7)]
    OPS.check(frame)


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(SchemaError, match=r"ops\..* cannot be read as"):
        OPS.frame({**{name: [value] for name, value in ROW.items()}, "op_id": [0, 1]})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda df: df.drop(columns="step"), r"missing: step; not expected: none"),
        (lambda df: df.assign(extra=1), r"missing: none; not expected: extra"),
        (lambda df: df[df.columns[::-1]], "in this order"),
        (lambda df: MODULES.frame(), r"ops is expected, and this is the frame modules; give trace\.ops\."),
        (lambda df: Trace({"ops": df}), r"ops is expected as a frame, and this is a Trace; give trace\.ops\."),
        (lambda df: None, r"ops is expected as a frame, and this is a NoneType; give trace\.ops\."),
        (
            lambda df: df.astype({"step": "float64"}),
            r"ops.step has dtype float64, expected int64; build it with OPS.frame",
        ),
        (lambda df: df.assign(op=pd.Series([1], dtype=object)), "ops.op has dtype object, expected str"),
        pytest.param(
            lambda df: df.astype({"op": object}),
            "ops.op has dtype object, expected str",
            marks=pytest.mark.skipif(READS_TEXTS_AS_OBJECTS, reason="pandas 2 reads texts as objects"),
        ),
        (lambda df: df.set_index(pd.Index([5])), r"ops needs a RangeIndex; call .reset_index\(drop=True\)"),
    ],
)
def test_a_frame_that_breaks_the_rules_is_refused(change, text):
    with pytest.raises(SchemaError, match=text):
        OPS.check(change(OPS.frame([ROW])))


def test_the_fakes_of_the_tests_keep_the_schema():
    assert OPS.check(make_ops({"op": "aten.mul.Tensor"})).shape == (1, len(OPS.columns))
    assert TENSORS.check(make_tensors((0, "input", 3))).shape == (1, len(TENSORS.columns))
    assert MODULES.check(make_modules("", "a")).shape == (2, len(MODULES.columns))


def test_negative_integers_are_null():
    column = pd.Series(nullable(np.array([3, -1])))
    assert str(column.dtype) == "Int64"
    assert column.fillna(0).tolist() == [3, 0]
