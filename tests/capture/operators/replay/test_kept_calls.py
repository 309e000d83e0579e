"""Replays the calls that opdiff kept, from the saved trace: they are records like those of opcapture."""

import json

import pytest
import torch
from torch import nn

import nbkit
from nbkit.trace.calls.layout import CALLS, IN_TRACE, line_of
from tests.capture.diff.planted import compared, scaled, with_fault
from tests.capture.operators.folders import problems, records
from tests.support.simulated import simulated_device

INPUTS = {
    "transposed": torch.randn(3, 4).t(),
    "channels": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
    "expanded": torch.randn(3, 1).expand(3, 5),
    "gaps": torch.randn(100, 8)[::50, ::2],
    "overlaps": torch.arange(5.0).as_strided((3, 3), (1, 1)),
    "bfloat16": torch.randn(4, dtype=torch.bfloat16),
    "float64": torch.randn(4, dtype=torch.float64) * 1e300,
    "special": torch.tensor([float("nan"), float("-inf"), -0.0]),
    "complex": torch.randn(3, dtype=torch.complex64),
    "empty": torch.randn(0, 3),
    "scalar": torch.tensor(2.5),
    "int8": torch.arange(5, dtype=torch.int8),
}


def saved(trace, folder):
    return trace.save(folder, values="captured")


@pytest.mark.parametrize("name", INPUTS)
def test_a_right_call_is_the_same_to_the_bit_and_comes_back_as_it_was(tmp_path, name):
    x = INPUTS[name]
    trace = compared(lambda: torch.neg(x), keep_ops="aten.neg.default")
    again = nbkit.opreplay(saved(trace, tmp_path / "trace"))
    assert problems(again) == [] and again.meta["identical_calls"] == again.meta["captured_calls"] == 1
    loaded = nbkit.load(tmp_path / "trace")
    assert loaded.captured.keys() == trace.captured.keys()
    for op_id, call in trace.captured.items():
        assert loaded.captured[op_id].tensors == call.tensors and loaded.captured[op_id].args == call.args
        (before,), (after,) = call.results, loaded.captured[op_id].results
        assert before.actual.tobytes() == after.actual.tobytes() and before.actual.dtype == after.actual.dtype


def test_a_fault_of_the_device_is_there_again_alone_and_not_on_the_cpu(tmp_path):
    device = simulated_device([nbkit.Fault("aten.mm", "relative_error", size=0.01)]).torch_device
    x = torch.randn(16, 16)
    trace = compared(lambda: torch.mm(x.to(device), x.to(device)))
    folder = saved(trace, tmp_path / "trace")
    again = nbkit.opreplay(folder)
    assert problems(again) == [] and again.meta["identical_calls"] == 1
    assert again.ops["op"].tolist() == ["aten.mm.default"]
    on_cpu = nbkit.opreplay(folder, device="cpu", against="captured")
    assert [status for _, status, _ in problems(on_cpu)] == ["mismatch"]
    assert on_cpu.diffs["max_rel_error"].iloc[0] > 0.001


def test_a_fault_from_elsewhere_is_not_there_alone(tmp_path):
    x = torch.randn(5, 5)
    trace = with_fault(lambda: x.softmax(-1), "aten._softmax.default", scaled)
    again = nbkit.opreplay(saved(trace, tmp_path / "trace"))
    assert problems(again) == [("aten._softmax.default", "mismatch", "other bits")]
    assert again.diffs["max_abs_error"].iloc[0] == pytest.approx(trace.diffs["max_abs_error"].max(), rel=1e-3)
    assert nbkit.opreplay(tmp_path / "trace", against="cpu:float64").meta["mismatches"] == 0


def test_results_that_were_not_kept_are_named_as_that(tmp_path):
    x = torch.randn(4, 6)

    def second(func, args, out):
        out[1].mul_(1.01)
        return out

    trace = with_fault(lambda: torch.var_mean(x, 1), "aten.var_mean.correction", second)
    again = nbkit.opreplay(saved(trace, tmp_path / "trace"))
    rows = again.diffs[["role", "position", "status", "message"]].fillna("").to_numpy().tolist()
    assert rows == [["output", 0, "ok", "its values were not kept"], ["output", 1, "mismatch", "other bits"]]


def test_what_a_call_writes_to_is_compared_too(tmp_path):
    norm, x = nn.BatchNorm1d(3), torch.randn(8, 3)
    trace = compared(lambda: norm(x), keep_ops="aten.native_batch_norm.default")
    again = nbkit.opreplay(saved(trace, tmp_path / "trace"))
    kept = trace.diffs[trace.diffs["op"] == "aten.native_batch_norm.default"]
    places = kept[["role", "position"]].to_numpy().tolist()
    assert again.diffs[["role", "position"]].to_numpy().tolist() == places and ["input", 3] in places
    assert problems(again) == [] and again.meta["identical_calls"] == 1


def test_calls_are_numbered_and_placed_as_in_the_step(tmp_path):
    layer = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    trace = with_fault(lambda: layer(torch.ones(2, 3)), "aten.addmm.default", scaled, call=1)
    folder = saved(trace, tmp_path / "trace")
    assert [record["number"] for record in records(folder)] == [1]
    places = json.loads((folder / IN_TRACE / "places.json").read_bytes())
    (op_id,) = trace.captured
    assert places["op_id"] == [op_id] and places["module"] == ["1"] and places["phase"] == ["forward"]
    assert nbkit.opreplay(folder, calls="1").meta["replayed_calls"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"results": 3}, "its record cannot be used"),
        ({"results": [{"role": "output", "position": 0, "dtype": "float32", "shape": [5, 5], "actual": ["O", "0"]}]},
         "its results cannot be read (ValueError: 'O' is no dtype of a result)"),
        ({"results": [{"role": "output", "position": 0, "dtype": "float32", "shape": [5, 5], "actual": ["<f8", "99"]}]},
         "its values '99' are not in the folder"),
    ],
)  # fmt: skip
def test_a_record_that_says_what_cannot_be_costs_one_call(tmp_path, change, message):
    x = torch.randn(5, 5)
    folder = saved(with_fault(lambda: x.exp(), "aten.exp.default", scaled), tmp_path / "trace")
    (record,) = records(folder)
    record["compared"] |= change
    (folder / IN_TRACE / CALLS).write_bytes(line_of(record))
    again = nbkit.opreplay(folder)
    (reason,) = again.meta["skipped"]
    assert message in reason and again.meta["unusable_calls"] == 1
    with pytest.raises(nbkit.TraceError, match="is damaged"):
        nbkit.load(folder)
