import json
import os
import subprocess
from operator import attrgetter
from pathlib import Path

import pytest
import torch

import nbkit
from nbkit.capture.calls.state import as_recorded
from nbkit.capture.replay.devices import device_of
from nbkit.schema import DIFFS, OPS, REPLAYED, RUNS, TIMINGS
from nbkit.trace.calls.reading import CallFolder
from tests.capture.operators.folders import captured, first_of, problems, records, rewritten
from tests.processes import PYTHON
from tests.support.simulated import simulated_device

ROOT = Path(__file__).parents[4]


def in_fresh_process(*words: str) -> subprocess.CompletedProcess[str]:
    command = [*PYTHON, "-m", "nbkit", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_a_fresh_process_does_the_same_to_the_bit(tmp_path):
    captured(tmp_path / "calls")
    done = in_fresh_process("replay", str(tmp_path / "calls"), "--save", str(tmp_path / "trace"))
    assert (done.returncode, done.stderr) == (0, "")
    meta = nbkit.load(tmp_path / "trace").meta
    assert meta["identical_calls"] == meta["captured_calls"] == len(records(tmp_path / "calls")) > 50


def test_the_frames_tell_ops_times_and_differences(tmp_path):
    captured(tmp_path / "calls")
    trace = nbkit.opreplay(tmp_path / "calls", repeats=3, warmup=1)
    OPS.check(trace.ops), TIMINGS.check(trace.timings), DIFFS.check(trace.diffs), REPLAYED.check(trace.replayed)
    assert (trace.timings["repeats"] == 3).all() and (trace.timings["median_us"] > 0).all()
    row = trace.replayed[trace.replayed["op"] == "aten.addmm.default"].iloc[0]
    median = trace.timings["median_us"][row["op_id"]]
    assert trace.ops["flops"][row["op_id"]] == 2 * 8 * 6 * 16
    assert row["flops_per_s"] == pytest.approx(2 * 8 * 6 * 16 / median * 1e6)
    assert row["moved_bytes"] == 4 * (16 + 8 * 6 + 6 * 16 + 8 * 16)
    assert (row["module"], row["phase"], row["call"]) == ("0", "forward", 0)
    assert trace.ops["input_shapes"][row["op_id"]] == "[[16], [8, 6], [6, 16]]"


def test_the_time_of_each_run_is_kept(tmp_path):
    captured(tmp_path / "calls")
    trace = nbkit.opreplay(tmp_path / "calls", repeats=3, warmup=2, ops="addmm")
    assert RUNS.check(trace.runs)["run"].tolist() == [0, 1, 2, 3, 4] * len(trace.ops)
    assert trace.runs["is_warmup"].tolist() == [True, True, False, False, False] * len(trace.ops)
    counted = trace.runs[~trace.runs["is_warmup"]].groupby("op_id")["time_us"]
    assert counted.median().tolist() == trace.timings["median_us"].tolist()
    assert counted.min().tolist() == trace.timings["min_us"].tolist()
    assert "first run" in trace.summary()


@pytest.mark.parametrize("phases", ["forward", "backward,optimizer"])
def test_only_the_calls_of_phases_run(tmp_path, phases):
    expected = captured(tmp_path / "calls").captures.query("phase in @phases.split(',')")["record"].tolist()
    trace = nbkit.opreplay(tmp_path / "calls", phases=phases, export=tmp_path / "calls.txt")
    assert trace.replayed["record"].tolist() == expected != []
    assert set(trace.replayed["phase"]) == set(phases.split(","))
    left_out = trace.meta["captured_calls"] - len(expected)
    assert trace.meta["skipped"] == {"not run again: calls that the filters leave out": left_out}
    counts = [int(line.split()[1].rstrip(",")) for line in (tmp_path / "calls.txt").open() if line.startswith("cnt")]
    assert sum(counts) == len(expected)


def test_a_phase_that_the_folder_does_not_tell_is_no_phase(tmp_path):
    captured(tmp_path / "calls")
    (tmp_path / "calls" / "places.json").unlink()  # as after a crash
    trace = nbkit.opreplay(tmp_path / "calls", phases="forward")
    (reason,) = trace.meta["skipped"]
    assert reason == "not run again: calls whose phase the folder does not tell, as the capture did not come to its end"
    assert nbkit.opreplay(tmp_path / "calls").meta["replayed_calls"] == trace.meta["captured_calls"]


def test_the_command_says_what_it_found_and_where_it_saved(tmp_path):
    captured(tmp_path / "calls")
    words = ("replay", str(tmp_path / "calls"), "--phases", "forward", "--save", str(tmp_path / "trace"))
    done = in_fresh_process(*words)
    assert done.returncode == 0 and done.stdout.rstrip().endswith(f"saved to {tmp_path / 'trace'}")
    assert done.stdout.startswith("Nothing wrong found.")
    assert set(nbkit.load(tmp_path / "trace").replayed["phase"]) == {"forward"}
    wrong = in_fresh_process("replay", str(tmp_path / "calls"), "--phases", "foward")
    assert wrong.returncode == 2 and "phases='foward' is not known; did you mean 'forward' or" in wrong.stderr


def test_shapes_of_a_list_of_tensors_are_a_list(tmp_path):
    captured(tmp_path / "calls", lambda: torch.cat([torch.ones(2, 4), torch.ones(2, 3)], 1), ops="aten.cat")
    assert nbkit.opreplay(tmp_path / "calls").ops["input_shapes"].tolist() == ["[[[2, 4], [2, 3]], []]"]


def test_arguments_are_told_as_in_the_step(tmp_path):
    def step() -> None:
        x = torch.ones(4, 3)
        x.sum(dim=[1], keepdim=True), torch.cat([x, x], 1), torch.where(x > 0, x, 2.0), x.new_full((2,), 3)
        torch.addmm(torch.ones(4), x, torch.ones(3, 4), alpha=2.0), torch.nn.functional.layer_norm(x, (3,))
        torch.nn.functional.conv1d(x[None], torch.ones(2, 4, 3), padding=1), torch.add(x, 1, out=torch.empty(0))

    captured(tmp_path / "calls", step)
    with nbkit.optrace() as trace:
        step()
    own = trace.ops[trace.ops["level"] == "aten"][["op", "arguments"]].reset_index(drop=True)
    ops = nbkit.opreplay(tmp_path / "calls").ops
    assert ops[["op", "arguments"]].equals(own) and len(own) > 12
    # Of a convolution the arguments that are no tensors count as well.
    assert ops["flops"][ops["op"] == "aten.convolution.default"].tolist() == [2 * (2 * 3) * (4 * 3)]


def test_an_op_that_writes_gets_its_inputs_anew_in_each_repeat(tmp_path):
    x = torch.ones(3)
    captured(tmp_path / "calls", lambda: x.mul_(2), ops="aten.mul_")
    trace = nbkit.opreplay(tmp_path / "calls", repeats=4, warmup=2)
    assert problems(trace) == [] and x.tolist() == [2, 2, 2]


def test_the_random_state_of_the_process_stays(tmp_path):
    captured(tmp_path / "calls")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    nbkit.opreplay(tmp_path / "calls")
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.is_grad_enabled() and torch.get_default_dtype() is torch.float32


def test_what_was_set_around_a_call_is_set_again(tmp_path):
    torch.set_default_dtype(torch.float64)
    try:
        captured(tmp_path / "calls", lambda: torch.ones(2), ops="aten.ones")
    finally:
        torch.set_default_dtype(torch.float32)
    assert problems(nbkit.opreplay(tmp_path / "calls")) == []


def test_what_a_device_was_set_to_is_set_again(tmp_path):
    # torch takes these settings without the device, too.
    names = ("cudnn.benchmark", "cudnn.allow_tf32", "cuda.matmul.allow_bf16_reduced_precision_reduction")
    reduced = torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = not reduced
        try:
            captured(tmp_path / "calls", lambda: torch.ones(3).exp())
        finally:
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = reduced
    before = [attrgetter(name)(torch.backends) for name in names]
    with as_recorded(CallFolder(tmp_path / "calls").head["state"]):
        assert [attrgetter(name)(torch.backends) for name in names] == [True, False, not reduced] != before
    assert [attrgetter(name)(torch.backends) for name in names] == before


def test_a_call_without_tensors_runs_on_the_device_that_it_makes_one_on():
    assert device_of([3], {"device": torch.device("meta")}) == torch.device("meta")
    assert device_of([torch.ones(1)], {}) == torch.device("cpu")


def other_result(number: int):
    """Changes the factor of one product, so that its result is not the captured one."""

    def change(at, record):
        return record | {"args": [record["args"][0], record["args"][1] * 1.5]} if at == number else record

    return change


def test_a_result_with_other_bits_is_told(tmp_path):
    captured(tmp_path / "calls", lambda: torch.arange(4.0) * 3.0, ops="aten.mul")
    folder = rewritten(tmp_path / "calls", tmp_path / "other", other_result(0))
    trace = nbkit.opreplay(folder)
    assert problems(trace) == [("aten.mul.Tensor", "mismatch", "other bits")]
    row = trace.diffs.iloc[0]
    assert (row["max_abs_error"], row["mismatch_count"]) == (4.5, 3)
    assert (trace.meta["identical_calls"], trace.meta["mismatches"]) == (0, 1)
    assert list(trace.findings["rule"]) == ["mismatch"]
    rows = nbkit.opreplay(folder, against="captured").diffs
    assert rows[["status", "mismatch_count"]].to_numpy().tolist() == [["mismatch", 3]]


def test_one_bit_is_enough_and_rounding_allows_it(tmp_path):
    captured(tmp_path / "calls", lambda: torch.full((100,), 3.0).mul(1 / 3), ops="aten.mul")
    changed = float(torch.nextafter(torch.tensor(1 / 3), torch.tensor(1.0)).double())

    def change(_, record):
        record["args"][1] = changed
        return record

    folder = rewritten(tmp_path / "calls", tmp_path / "other", change)
    assert problems(nbkit.opreplay(folder)) == [("aten.mul.Tensor", "mismatch", "other bits")]
    assert problems(nbkit.opreplay(folder, against="captured")) == []


def test_form_and_memory_are_compared(tmp_path):
    captured(tmp_path / "calls", lambda: torch.ones(2, 3).t(), ops="aten.t")
    number = first_of(tmp_path / "calls", "aten.t.default")

    def stride(_, record):
        record["tensors"][1]["stride"] = [2, 1]
        return record

    def alias(_, record):
        record["storages"].append(dict(record["storages"][0]))
        record["tensors"][1]["storage"] = 1
        return record

    def shape(_, record):
        record["tensors"][1]["shape"] = [2, 3]
        return record

    def told(change):
        return problems(nbkit.opreplay(rewritten(tmp_path / "calls", tmp_path / change.__name__, change)))

    assert number == 0
    assert told(stride) == [("aten.t.default", "mismatch", "strides [1, 3], expected [2, 1]")]
    assert told(alias) == [("aten.t.default", "mismatch", "the memory of an argument, expected its own")]
    assert told(shape) == [("aten.t.default", "shape", "shape [3, 2], expected [2, 3]")]


def test_a_tensor_may_be_given_other_memory_and_another_size(tmp_path):
    def step() -> None:
        x = torch.zeros(10)
        x.set_(torch.ones(3)).resize_(50)
        x.unsqueeze_(0).transpose_(0, 1).add_(1)
        torch.add(torch.ones(4, 4), 1, out=torch.empty(0))
        x.as_strided((3, 2), (1, 1), 4).mul(2)

    trace = captured(tmp_path / "calls", step)
    assert problems(nbkit.opreplay(tmp_path / "calls")) == []
    assert {"aten.set_.source_Tensor", "aten.resize_.default", "aten.add.out"} <= set(trace.captures["op"])


def test_what_raised_must_raise_again(tmp_path):
    with pytest.raises(RuntimeError), nbkit.opcapture(tmp_path / "calls", ops="aten.mm"):
        torch.ones(2, 3) @ torch.ones(2, 3)
    trace = nbkit.opreplay(tmp_path / "calls")
    message = trace.diffs["message"][0]
    assert message.startswith("it raises as in the step: RuntimeError: ") and "mat1 and mat2" in message
    assert not len(trace.timings) and trace.ops["total_time_us"].tolist() == [0.0]

    def whole(_, record):
        del record["raised"]
        return record | {"outputs": [None]}

    trace = nbkit.opreplay(rewritten(tmp_path / "calls", tmp_path / "other", whole))
    assert [status for _, status, _ in problems(trace)] == ["failed"]
    assert trace.meta["mismatches"] == 1


def test_a_fault_of_a_device_shows_where_its_calls_run_again_on_the_cpu(tmp_path):
    device = simulated_device([nbkit.Fault("aten.tanh", "wrong_sign")])
    try:
        x = torch.linspace(-1, 1, 9).to(device.torch_device)
        captured(tmp_path / "calls", lambda: (x.tanh(), x.sin(), x.t()))
        assert problems(nbkit.opreplay(tmp_path / "calls")) == []
        for against in ("bits", "captured"):
            found = problems(nbkit.opreplay(tmp_path / "calls", device="cpu", against=against))
            assert [(op, status) for op, status, _ in found] == [("aten.tanh.default", "mismatch")]
        judged = nbkit.opreplay(tmp_path / "calls", against="cpu:float64")
        assert [(op, status) for op, status, _ in problems(judged)] == [("aten.tanh.default", "mismatch")]
        captured(tmp_path / "right", lambda: (x.cpu().tanh(), torch.full((2,), 0.5)), ops="aten.tanh, aten.full")
        there = nbkit.opreplay(tmp_path / "right", device=device.torch_device)
        assert (there.meta["devices"], there.meta["mismatches"]) == (["sim:0"], 1)
        assert json.loads(there.ops["arguments"][1])["device"] == "sim:0"
    finally:
        simulated_device()


def test_a_reference_judges_as_opdiff_does(tmp_path):
    captured(tmp_path / "calls")
    trace = nbkit.opreplay(tmp_path / "calls", against="cpu:float64")
    left = problems(trace)
    assert {status for _, status, _ in left} <= {"skipped"}
    assert {op for op, _, _ in left} <= {"aten.bernoulli_.float", "aten.native_dropout.default"}
    assert (trace.diffs["noise_ratio"].dropna() < 8).all()


def test_filters_choose_calls(tmp_path):
    captured(tmp_path / "calls")
    trace = nbkit.opreplay(tmp_path / "calls", ops="aten.addmm", calls="0")
    assert list(trace.ops["op"]) == ["aten.addmm.default"]
    left = trace.meta["captured_calls"] - 1
    assert trace.meta["skipped"] == {"not run again: calls that the filters leave out": left}
    assert len(nbkit.opreplay(tmp_path / "calls", exclude_ops="aten.*").ops) == 0


def test_export_writes_what_backend_bench_reads(tmp_path):
    def step() -> None:
        for _ in range(2):
            torch.ones(4, 3).t().contiguous().sum(dim=[1], dtype=torch.float64)

    captured(tmp_path / "calls", step, ops="aten.clone, aten.sum")
    nbkit.opreplay(tmp_path / "calls", export=tmp_path / "calls.txt")
    assert (tmp_path / "calls.txt").read_text() == (
        "Operator: aten.clone.default\n"
        "cnt: 2, ((T([3, 4], f32, stride=(1, 3)),), {'memory_format': torch.contiguous_format})\n"
        "Operator: aten.sum.dim_IntList\n"
        "cnt: 2, ((T([3, 4], f32), [1]), {'dtype': f64})\n"
    )
    nbkit.opreplay(tmp_path / "calls", ops="aten.sum", export=tmp_path / "sums.txt")
    assert (tmp_path / "sums.txt").read_text().startswith("Operator: aten.sum.dim_IntList\ncnt: 2, ")


def test_export_writes_sparse_tensors_and_complex_numbers(tmp_path):
    sparse = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,), check_invariants=True)
    csr, waves = torch.eye(2).to_sparse_csr(), torch.ones(2, dtype=torch.complex64)
    captured(tmp_path / "calls", lambda: (sparse.neg(), sparse.coalesce().neg(), csr.neg(), waves * (1 + 2j)))
    nbkit.opreplay(tmp_path / "calls", ops="aten.neg, aten.mul", export=tmp_path / "calls.txt")
    assert (tmp_path / "calls.txt").read_text() == (
        "Operator: aten.neg.default\n"
        "cnt: 1, ((ST([3], f32, torch.sparse_coo, False),), {})\n"
        "cnt: 1, ((ST([3], f32, torch.sparse_coo, True),), {})\n"
        "cnt: 1, ((ST([2, 2], f32, torch.sparse_csr, False),), {})\n"
        "Operator: aten.mul.Tensor\n"
        "cnt: 1, ((T([2], c64), (1+2j)), {})\n"
    )


def test_the_exit_status_says_whether_something_differs(tmp_path):
    captured(tmp_path / "calls", lambda: torch.arange(4.0) * 3.0)
    rewritten(tmp_path / "calls", tmp_path / "other", other_result(first_of(tmp_path / "calls", "aten.mul.Tensor")))
    assert in_fresh_process("replay", str(tmp_path / "calls")).returncode == 0
    done = in_fresh_process("replay", str(tmp_path / "other"))
    assert done.returncode == 1 and "output 0 is not what it was in the step: other bits" in done.stdout


def test_what_is_shown_and_saved(tmp_path):
    captured(tmp_path / "calls")
    trace = nbkit.opreplay(tmp_path / "calls", name="again")
    trace.save(tmp_path / "trace")
    assert nbkit.load(tmp_path / "trace").replayed.equals(trace.replayed)
    assert "opreplay again" in trace.summary() and "same bits" in trace.summary()
    nbkit.opreport(trace, path=tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "per step" not in report and str(tmp_path) not in report
    assert json.loads(json.dumps(trace.meta))["identical_calls"] == len(trace.ops)


def test_of_memory_for_the_backward_pass_the_form_is_compared(tmp_path):
    table, ids = torch.randn(9, 4, requires_grad=True), torch.tensor([[1, 2], [3, 3]])
    captured(tmp_path / "calls", lambda: torch.nn.functional.embedding_bag(ids, table), ops="aten._embedding_bag")
    rows = nbkit.opreplay(tmp_path / "calls").diffs
    assert set(rows["status"]) == {"ok"}
    assert rows["message"].fillna("").tolist() == ["", *["memory for the backward op: only its form is compared"] * 3]
