"""Tensors, each with what is known of its op."""

import pandas as pd
import pytest
import torch

import nbkit
from nbkit.schema import OPS, TENSORS
from tests.support.fakes import make_ops, make_tensors, make_trace, small_trace


def test_each_tensor_has_the_columns_of_its_op():
    ops = make_ops(
        {"op": "aten.mm.default", "module": "a", "phase": "forward", "source": "a.py:1"},
        {
            "op": "aten.exp.default",
            "module": None,
            "phase": "optimizer",
            "step": 1,
            "device": "cuda:0",
            "size_bytes": 9,
        },
    )
    found = nbkit.tensors_with_ops(make_trace(ops, make_tensors((1, "input", 7), (0, "output", 7), (1, "output", 8))))
    assert found["op"].tolist() == ["aten.exp.default", "aten.mm.default", "aten.exp.default"]
    assert found["phase"].tolist() == ["optimizer", "forward", "optimizer"]
    assert found["step"].tolist() == [1, 0, 1]
    assert found["module"].isna().tolist() == [True, False, True]
    assert found["tensor_id"].tolist() == [7, 7, 8]
    assert set(found["device"]) == {"cpu"} and set(found["size_bytes"]) == {64}


def test_the_frame_is_tensors_and_what_was_asked_for():
    trace = small_trace()
    found = nbkit.tensors_with_ops(trace)
    added = ["op", "phase", "model", "module", "step", "source"]
    assert list(found.columns) == ["op_id", *added, *TENSORS.frame().columns.drop("op_id")]
    pd.testing.assert_frame_equal(found.drop(columns=added), trace.tensors)
    assert list(trace.tensors.columns) == list(TENSORS.frame().columns)
    assert list(nbkit.tensors_with_ops(trace, "level").columns[:2]) == ["op_id", "level"]
    merged = trace.tensors.merge(trace.ops[["op_id", *added]], on="op_id", how="left")
    pd.testing.assert_frame_equal(found[merged.columns], merged)


def test_a_recorded_step_can_be_asked_at_once():
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    with nbkit.optrace() as trace:
        model(torch.ones(4, 3)).sum().backward()
    found = nbkit.tensors_with_ops(trace, ["module", "phase", "op"])
    made = found.query("role == 'output' and phase == 'forward' and module == '0' and op == 'aten.addmm.default'")
    assert made["shape"].tolist() == ["[4, 5]"]
    assert set(found.query("name == '2.weight'")["module"].dropna()) == {"2"}


def test_what_cannot_be_joined_is_refused():
    with pytest.raises(nbkit.OptionError, match="'modul', which is no column of ops alone.*module"):
        nbkit.tensors_with_ops(small_trace(), ["modul"])
    with pytest.raises(nbkit.OptionError, match="'device', which is no column of ops alone"):
        nbkit.tensors_with_ops(small_trace(), ["device"])
    with pytest.raises(nbkit.OptionError, match="The trace has no tensors; record it with"):
        nbkit.tensors_with_ops(nbkit.Trace({"ops": OPS.frame()}))
    with pytest.raises(nbkit.OptionError, match="trace is expected to be a trace, and this is a DataFrame"):
        nbkit.tensors_with_ops(small_trace().tensors)


def test_a_trace_without_ops_has_an_empty_frame():
    found = nbkit.tensors_with_ops(make_trace(OPS.frame()))
    assert len(found) == 0 and "module" in found
