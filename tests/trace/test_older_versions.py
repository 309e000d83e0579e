"""Traces that nbkit 0.1 saved load with the names of today."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import nbkit
from nbkit.findings.bad_values import MEASURED
from nbkit.schema import MEMORY
from nbkit.trace.older_versions import upgraded_meta
from nbkit.trace.trace import Trace
from nbkit.views.report.leaving import leaving
from tests.support.diff_frames import make_diffs
from tests.support.fakes import make_ops, make_trace

# Recorded and saved by schema version 1: opdiff(against="cpu:float64", keep_ops="addmm") of a linear layer.
SAVED = Path(__file__).parent / "saved_version_1" / "against"


def test_columns_and_values_have_the_names_of_today():
    diffs = nbkit.load(SAVED).diffs
    assert len(diffs) == 8
    assert diffs["local_error"].notna().any()
    assert diffs["propagated_error"].notna().any()
    assert set(diffs["error_class"].dropna()) == {"clean"}


def test_meta_has_the_keys_of_today():
    meta = nbkit.load(SAVED).meta
    assert meta["captured"]["not_captured"] == {}
    assert (meta["half_precision_lost_at"], meta["diverged_integers"]) == (None, 0)
    assert not {"kept", "half_lost", "parted_integers"} & set(meta)


def test_captured_calls_are_read():
    trace = nbkit.load(SAVED)
    assert list(trace.captured) == [2]
    assert str(nbkit.call_of(trace, 2).op) == "aten.addmm.default"


def test_saved_again_it_is_a_trace_of_today(tmp_path):
    trace = nbkit.load(SAVED)
    again = nbkit.load(trace.save(tmp_path / "again", values="captured"))
    assert again.meta == trace.meta
    assert again.diffs.equals(trace.diffs)


def saved_by_version_2(trace, folder):
    """A trace of version 2: opcheck's findings had a row per tensor, with columns of their own."""
    path = trace.save(folder)
    meta = json.loads((path / "meta.json").read_text())
    meta["frames"].remove("lines")
    (path / "meta.json").write_text(json.dumps({**meta, "schema_version": 2}))
    rows = [
        {"op_id": op_id, "kind": found.rule, "message": found.message, "message_values": found.message_values}
        | {name: json.loads(found.evidence)[name] for name in MEASURED}
        for found in trace.findings.itertuples()
        for op_id in json.loads(found.evidence)["op_ids"]
    ]
    pq.write_table(pa.Table.from_pandas(pd.DataFrame(rows)), path / "findings.parquet")
    return nbkit.load(path)


def test_findings_of_single_tensors_become_those_of_today(tmp_path):
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    with nbkit.opcheck() as trace:
        for _ in range(3):
            weight.log().sum().backward()
            weight.grad.fill_(1)
            optimizer.step()
            torch.zeros(2).reciprocal()
    loaded = saved_by_version_2(trace, tmp_path / "saved")
    assert trace.findings["count"].sum() > len(trace.findings)
    pd.testing.assert_frame_equal(loaded.findings, trace.findings.assign(source_text=loaded.findings["source_text"]))
    assert loaded.findings["source_text"].isna().all()


def test_a_comparison_of_version_1_has_its_wrong_tensors_as_findings():
    loaded = nbkit.load(SAVED)
    wrong = ~loaded.diffs["status"].isin(["ok", "reduced", "skipped"])
    assert loaded.findings["count"].sum() == wrong.sum()


def test_lines_that_a_reader_skipped_keep_their_rows():
    assert upgraded_meta({"unread": [{"line": 3}], "name": "a"}) == {"skipped_lines": [{"line": 3}], "name": "a"}


@pytest.mark.parametrize("milestone", ["first_divergence", "largest_growth", "half_precision_lost_at"])
def test_milestones_have_the_names_of_today(milestone):
    """Those of the columns that they quote."""
    before = {"op_id": 3, "injected_error": 0.5, "inherited_error": None}
    old = "half_lost" if milestone == "half_precision_lost_at" else milestone
    assert upgraded_meta({old: before}) == {milestone: {"op_id": 3, "local_error": 0.5, "propagated_error": None}}


def test_a_report_of_it_has_no_message_that_may_hold_elements():
    trace = nbkit.load(SAVED)
    assert trace.diffs["message_values"].notna().equals(trace.diffs["message"].notna())
    texts = {"message": "worst at [0]: 1.5, expected 2"}
    meta = upgraded_meta({"first_divergence": texts, "error": {"type": "NonFiniteError", **texts}})
    left = leaving(Trace(trace.frames, meta), values=False)
    assert set(left.diffs["message"].dropna()) <= {"…"}
    assert (left.meta["first_divergence"]["message"], left.meta["error"]["message"]) == ("…", "…")


def test_memory_of_version_4_gets_the_columns_of_today(tmp_path):
    rows = [{"time_us": 1.0, "device": "cpu", "delta_bytes": 8, "allocated_bytes": 8, "allocation_id": 0}]
    trace = nbkit.Trace({"memory": MEMORY.frame(rows)})
    path = trace.save(tmp_path / "saved")
    meta = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps({**meta, "schema_version": 4}))
    old = trace.memory.drop(columns=["reserved_bytes", "stream", "address", "stack_id"])
    pq.write_table(pa.Table.from_pandas(old), path / "memory.parquet")
    pd.testing.assert_frame_equal(nbkit.load(path).memory, trace.memory)


def test_ops_of_version_3_get_the_columns_of_today(tmp_path):
    with nbkit.optrace() as trace:
        torch.ones(2).sum(0)
    path = trace.save(tmp_path / "saved")
    meta = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps({**meta, "schema_version": 3}))
    old = trace.ops.drop(columns=["input_dtypes", "input_strides"])
    pq.write_table(pa.Table.from_pandas(old), path / "ops.parquet")
    loaded = nbkit.load(path).ops
    pd.testing.assert_frame_equal(loaded, trace.ops)
    assert loaded["arguments"].notna().any()


def test_differences_of_version_4_get_columns_for_patterns(tmp_path):
    path = make_trace(make_ops({"op": "aten.mm.default"})).save(tmp_path / "saved")
    diffs = make_diffs({"status": "mismatch"})
    pq.write_table(pa.Table.from_pandas(diffs.drop(columns=["pattern", "pattern_evidence"])), path / "diffs.parquet")
    meta = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps({**meta, "schema_version": 4, "frames": [*meta["frames"], "diffs"]}))
    loaded = nbkit.load(path).diffs
    assert list(loaded) == list(diffs)
    assert loaded["pattern"].isna().all()


def test_a_recording_of_version_2_that_judged_nothing_is_as_it_was(tmp_path):
    trace = make_trace(make_ops({"op": "aten.mm.default"}))
    path = trace.save(tmp_path / "saved")
    meta = json.loads((path / "meta.json").read_text())
    for frames in (meta["frames"], [name for name in meta["frames"] if name != "ops"]):
        (path / "meta.json").write_text(json.dumps({**meta, "schema_version": 2, "frames": frames}))
        loaded = nbkit.load(path)
        assert {*loaded.frames} == {*frames}
    pd.testing.assert_frame_equal(loaded.tensors, trace.tensors)


def test_error_classes_of_version_1_have_the_names_of_today(tmp_path):
    folder = tmp_path / "saved"
    shutil.copytree(SAVED, folder)
    table = pq.read_table(folder / "diffs.parquet")
    classes = pa.array(["injected", "inherited", "given", "clean", None, None, None, None], pa.string())
    at = table.column_names.index("error_class")
    pq.write_table(table.set_column(at, "error_class", classes), folder / "diffs.parquet")
    diffs = nbkit.load(folder).diffs
    assert diffs["error_class"].dropna().tolist() == ["local", "propagated", "input", "clean"]
