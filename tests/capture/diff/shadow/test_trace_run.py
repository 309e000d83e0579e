"""opdiff(against=TRACE): the step beside a run that was recorded before."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from tests.capture.diff.planted import Planted, scaled
from tests.capture.diff.shadow.runs import against
from tests.capture.models import record


def step_of(between=F.relu):
    torch.manual_seed(0)
    first, second, x = nn.Linear(8, 8), nn.Linear(8, 2), torch.randn(4, 8)
    return lambda: second(between(first(x))).sum().backward()


def recorded(**options):
    return record(step_of(), values="stats", **options)


def test_another_op_is_where_the_step_parts_from_a_saved_trace(tmp_path):
    path = recorded().save(tmp_path / "right")
    for other in (path, str(path), nbkit.load(path)):
        trace = against(step_of(F.gelu), other)
        first = trace.meta["first_divergence"]
        assert (first["op"], first["right_op"]) == ("aten.gelu.default", "aten.relu.default")
        assert trace.ops["op"].iloc[first["op_id"]] == "aten.gelu.default"
    assert trace.alignment["error_class"].value_counts()["local"] == 1
    assert nbkit.load(trace.save(tmp_path / "now")).alignment.equals(trace.alignment)
    assert set(trace.diffs["status"]) == {"ok"} and trace.diffs["error_class"].isna().all()


def test_a_planted_fault_is_found_in_both_ways():
    right = recorded(name="laptop")
    with Planted("aten.addmm.default", scaled):
        trace = against(step_of(), right)
    first = trace.meta["first_divergence"]
    assert (first["op"], first["error_class"], trace.meta["against"]) == ("aten.addmm.default", "local", "laptop")
    assert trace.diffs["op_id"][trace.diffs["status"] == "mismatch"].tolist() == [first["op_id"]]


def test_the_same_step_does_not_part():
    trace = against(step_of(), recorded())
    assert trace.meta["first_divergence"] is None and trace.meta["notes"] == []
    assert set(trace.alignment["error_class"].dropna()) == {"clean"}


def test_a_trace_of_something_else_is_said_and_loses_nothing():
    x = torch.eye(3)
    trace = against(lambda: x.exp(), record(lambda: x.sum(), values="stats"))
    assert trace.meta["notes"] == ["The two runs share no op, so nothing was compared; are they of the same step?"]
    assert trace.diffs["op"].tolist() == ["aten.exp.default"]


def test_after_an_exception_the_step_so_far_is_compared():
    step, other = step_of(), recorded()
    with pytest.raises(RuntimeError, match="stop"), nbkit.opdiff(against=other) as trace:
        step()
        raise RuntimeError("stop")
    assert trace.meta["first_divergence"] is None and not trace.complete
    assert (trace.alignment["action"] == "match").all()


def test_a_trace_without_statistics_and_a_damaged_one_are_refused(tmp_path):
    with pytest.raises(nbkit.OptionError, match=r"against='bare' holds no value statistics.*optrace\(values='stats'\)"):
        nbkit.opdiff(against=record(step_of(), name="bare"))
    with pytest.raises(nbkit.TraceError, match="There is no"):
        nbkit.opdiff(against=tmp_path / "nowhere")
    (recorded().save(tmp_path / "trace") / "meta.json").write_text("{")
    with pytest.raises(nbkit.TraceError):
        nbkit.opdiff(against=str(tmp_path / "trace"))
