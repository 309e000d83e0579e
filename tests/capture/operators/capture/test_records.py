import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

import nbkit
from bench.captured.counted import calls
from nbkit.capture.calls.rebuilding import BuiltCall
from nbkit.capture.native.library import library
from nbkit.trace.calls.file_writer import PythonFileWriter
from nbkit.trace.calls.layout import CALLS, PLACES
from nbkit.trace.calls.reading import CallFolder
from nbkit.trace.calls.writing import CallWriter
from tests.capture.operators.folders import captured, needs_overload_names, records, training_step
from tests.processes import PYTHON


def call(folder: Path, op: str) -> BuiltCall:
    opened = CallFolder(folder)
    return BuiltCall(next(record for _, record in opened if record["op"] == op), opened.content)


def test_inputs_are_those_from_before_an_op_that_writes_to_them(tmp_path):
    x = torch.arange(4.0)
    with nbkit.opcapture(tmp_path / "calls"):
        x.mul_(3)
    made = call(tmp_path / "calls", "aten.mul_.Tensor")
    assert made.args[0].tolist() == [0, 1, 2, 3]
    assert made.args[1] == 3
    assert [made.result(after).tolist() for _, after in made.record["written"]] == [[0, 3, 6, 9]]


def test_views_of_one_memory_are_views_of_one_memory_again(tmp_path):
    base = torch.arange(24.0).reshape(4, 6)
    with nbkit.opcapture(tmp_path / "calls", ops="aten.add_"):
        base[:, 1:3].add_(base[:, 3:5])
    first, second = call(tmp_path / "calls", "aten.add_.Tensor").args
    assert (first.stride(), first.storage_offset(), second.storage_offset()) == ((6, 1), 1, 3)
    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    assert second.tolist() == [[3, 4], [9, 10], [15, 16], [21, 22]]


def test_expanded_conjugated_sparse_and_empty_tensors_come_back_as_they_were(tmp_path):
    wide, waves = torch.ones(1, 3).expand(4, 3), torch.randn(3, dtype=torch.complex64).conj()
    sparse = torch.sparse_coo_tensor([[0, 2], [1, 0]], [1.0, 2.0], (3, 3), check_invariants=True).coalesce()
    with nbkit.opcapture(tmp_path / "calls", ops="aten.add.Tensor, aten.mm, aten.neg, aten.abs"):
        wide + 1, waves[None] @ waves[:, None], torch.empty(0, 5).neg(), sparse.abs()
    folder = tmp_path / "calls"
    assert call(folder, "aten.add.Tensor").args[0].stride() == (0, 1)
    again = call(folder, "aten.mm.default").args[1]
    assert again.is_conj() and torch.equal(again[:, 0], waves)
    assert call(folder, "aten.neg.default").args[0].shape == (0, 5)
    matrix = call(folder, "aten.abs.default").args[0]
    assert matrix.is_coalesced() and torch.equal(matrix.to_dense(), sparse.to_dense())


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr"])
def test_compressed_sparse_tensors_come_back_as_they_were(tmp_path, layout):
    dense = torch.tensor([[0.0, 1.0, 0, 0], [2, 0, 0, 3]])
    sparse = dense.to_sparse(layout=getattr(torch, layout), **({"blocksize": (1, 2)} if layout == "sparse_bsr" else {}))
    with nbkit.opcapture(tmp_path / "calls", ops="aten.clone"):
        sparse.clone()
    matrix = call(tmp_path / "calls", "aten.clone.default").args[0]
    assert matrix.layout is sparse.layout and torch.equal(matrix.values(), sparse.values())
    assert torch.equal(matrix.to_dense(), dense)


def test_memory_that_is_read_again_is_stored_once(tmp_path):
    x = torch.randn(1000, 100)
    with nbkit.opcapture(tmp_path / "calls"):
        for _ in range(10):
            x.sum()
            x.t().max()
    size = sum(file.stat().st_size for file in (tmp_path / "calls").iterdir())
    assert size < 1.05 * x.nbytes


def test_small_memory_waits_for_a_file_and_is_known_after_it(tmp_path, monkeypatch):
    monkeypatch.setattr("nbkit.trace.calls.shards.BLOCK", 100)
    rows = torch.arange(24.0).reshape(3, 8)
    with nbkit.opcapture(tmp_path / "calls", ops="aten.neg"):
        for row in (*rows, *rows):
            row.clone().neg()
    opened = CallFolder(tmp_path / "calls")
    assert [BuiltCall(record, opened.content).args[0].tolist() for _, record in opened] == rows.tolist() * 2
    names = [record["storages"][0]["before"] for record in records(tmp_path / "calls")]
    assert names[:3] == names[3:] and len(set(names)) == 3
    assert len([*(tmp_path / "calls").glob("values-*.safetensors")]) > 1


def test_equal_memory_is_not_taken_for_the_same_memory(tmp_path):
    x, y = torch.zeros(2000), torch.zeros(2000)
    with nbkit.opcapture(tmp_path / "calls", ops="aten.add_"):
        x.add_(y)
    entry = records(tmp_path / "calls")[0]["storages"]
    assert len(entry) == 2 and entry[0]["before"] == entry[1]["before"]


@pytest.mark.parametrize("size", [8, 100_000])
def test_what_numpy_writes_between_two_ops_is_seen(tmp_path, size):
    x = torch.zeros(size)
    with nbkit.opcapture(tmp_path / "calls", ops="aten.sum"):
        x.sum()
        x.numpy()[1] = 7.0
        x.sum()
    opened = CallFolder(tmp_path / "calls")
    sums = [BuiltCall(record, opened.content).args[0].sum().item() for _, record in opened]
    assert sums == [0.0, 7.0]


def test_values_that_numpy_moves_between_two_ops_are_seen(tmp_path):
    x, places = torch.zeros(200_000), [0, *(2**power for power in range(18))]
    with nbkit.opcapture(tmp_path / "calls", ops="aten.argmax"):
        for place in places:
            x.numpy()[:] = np.arange(200_000) == place
            x.argmax()
    opened = CallFolder(tmp_path / "calls")
    assert [BuiltCall(record, opened.content).args[0].argmax().item() for _, record in opened] == places


def test_what_an_op_that_is_left_out_writes_is_seen(tmp_path):
    x = torch.arange(100_000, dtype=torch.int64)
    with nbkit.opcapture(tmp_path / "calls", ops="aten.max.default"):
        x.max()
        x.copy_(x.flip(0))  # the sum of the words stays
        x.max()
    opened = CallFolder(tmp_path / "calls")
    assert [BuiltCall(record, opened.content).args[0][0].item() for _, record in opened] == [0, 99_999]


def test_of_a_large_memory_only_what_is_used_is_stored(tmp_path):
    cache = torch.randn(1000, 1000)
    with nbkit.opcapture(tmp_path / "calls", ops="aten.sin"):
        cache[500, 10:20].sin()
    assert call(tmp_path / "calls", "aten.sin.default").args[0].tolist() == cache[500, 10:20].tolist()
    assert sum(entry["bytes"] for entry in records(tmp_path / "calls")[0]["storages"]) < 1000


def test_of_what_only_needs_shapes_no_values_are_stored(tmp_path):
    x = torch.randn(8, 8)
    with nbkit.opcapture(tmp_path / "calls"):
        x.t(), x.view(64), torch.empty_like(x)
    kept = records(tmp_path / "calls")
    assert {"aten.t.default", "aten.view.default", "aten.empty_like.default"} <= {one["op"] for one in kept}
    assert not [entry for one in kept for entry in one["storages"] if entry.keys() & {"before", "after"}]


def test_random_ops_have_the_state_of_their_generator(tmp_path):
    own = torch.Generator().manual_seed(3)
    before = own.get_state()
    with nbkit.opcapture(tmp_path / "calls", ops="aten.randn"):
        drawn = torch.randn(4, generator=own)
    made = call(tmp_path / "calls", "aten.randn.generator")
    assert torch.equal(made.kwargs["generator"].get_state(), before)
    assert torch.equal(torch.randn(4, generator=made.kwargs["generator"]), drawn)


def test_gradients_of_each_argument_are_outputs_of_the_backward_op(tmp_path):
    x, weight = torch.randn(3, 4), torch.randn(4, 5, requires_grad=True)
    bias = torch.randn(5, requires_grad=True)
    trace = captured(tmp_path / "calls", lambda: torch.addmm(bias, x, weight).square().sum().backward())
    phases = trace.frames["captures"].groupby("phase")["op"].apply(list)
    assert "aten.addmm.default" in phases["forward"]
    assert "aten.mm.default" in phases["backward"]
    made = call(tmp_path / "calls", "aten.mm.default")
    assert torch.equal(made.result(made.record["outputs"][0]["tensor"]), weight.grad)


@needs_overload_names
def test_every_call_is_in_the_folder(tmp_path):
    trace = captured(tmp_path / "calls", training_step())
    kept = Counter(record["op"].removeprefix("aten.") for record in records(tmp_path / "calls"))
    assert trace.meta["captured_calls"] == kept.total() > 50
    # Under a dispatch mode, as without the native recorder, autograd detaches what it saves.
    assert set(kept - calls(training_step())) == ({"detach.default"} if library() is None else set())
    assert set(calls(training_step()) - kept) <= {"empty.memory_format", "detach_.default"}


def test_filters_take_calls_by_op_phase_and_number(tmp_path):
    trace = captured(tmp_path / "calls", ops="aten.mm, aten.addmm", phases="forward", calls="1:")
    kept = trace.frames["captures"][["op", "phase", "call"]]
    assert kept.to_numpy().tolist() == [["aten.addmm.default", "forward", 1]]
    skipped = trace.meta["skipped"]
    assert skipped["not captured: calls that the filters leave out"] == 1
    assert skipped["not captured: other phases"] > 10


def test_the_folder_says_where_each_call_stood(tmp_path):
    frame = captured(tmp_path / "calls").captures
    places = json.loads((tmp_path / "calls" / PLACES).read_text())
    assert list(places) == ["op_id", "module", "phase", "source"] and len(set(places["module"])) > 2
    for name, values in places.items():
        assert values == [None if one is None or one != one else one for one in frame[name].astype(object)]


def test_strides_of_dimensions_of_size_1_are_kept(tmp_path):
    matrix = torch.randn(512).as_strided((512, 1), (1, 512))
    with nbkit.opcapture(tmp_path / "calls", ops="aten.mm"):
        torch.randn(1, 512) @ matrix
    assert call(tmp_path / "calls", "aten.mm.default").args[1].stride() == (1, 512)
    assert nbkit.opreplay(tmp_path / "calls").meta["identical_calls"] == 1


def test_a_step_may_go_to_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    trace = captured("calls", lambda: (torch.ones(3).exp(), os.chdir("other"), torch.ones(3).sin()))
    assert not trace.meta["notes"] and not [*(tmp_path / "other").iterdir()]
    assert len(records(tmp_path / "calls")) == trace.meta["captured_calls"] == 4


def test_a_folder_that_is_being_written_is_refused(tmp_path):
    with nbkit.opcapture(tmp_path / "calls") as outer:
        torch.ones(3).exp()
        with pytest.raises(nbkit.TraceError, match="^Another opcapture is writing .*calls; choose another name"):
            captured(tmp_path / "x" / ".." / "calls", lambda: torch.ones(3).sin())
    assert outer.complete and len(records(tmp_path / "calls")) == 2
    assert captured(tmp_path / "calls", lambda: torch.ones(3).sin()).complete


def test_only_takes_the_calls_that_opdiff_found_wrong(tmp_path):
    def step() -> None:
        x = torch.full((4,), 100.0)
        x.exp(), x.neg(), torch.zeros(4).exp(), x.exp()

    def wrong(op, args, kwargs):
        return op(*args, **kwargs) + (1 if op._opname == "exp" and args[0][0] == 0 else 0)

    with nbkit.opdiff(reference=wrong) as flagged:
        step()
    trace = captured(tmp_path / "calls", step, only=flagged)
    assert trace.frames["captures"][["op", "call"]].to_numpy().tolist() == [["aten.exp.default", 1]]


def test_only_takes_more_calls_than_a_finding_names(tmp_path, monkeypatch):
    monkeypatch.setattr("nbkit.findings.finding.MOST_OPS", 1)
    x = torch.zeros(1)

    def step() -> None:
        x.exp(), x.exp(), x.exp()

    with nbkit.opdiff(reference=lambda op, args, kwargs: op(*args, **kwargs) + 1) as flagged:
        step()
    assert captured(tmp_path / "calls", step, only=flagged).captures["call"].tolist() == [0, 1, 2]


def test_only_refuses_a_trace_that_tells_no_calls(tmp_path):
    def step() -> None:
        torch.zeros(1).exp()

    with nbkit.optrace() as bare:
        step()
    with nbkit.optrace(ops="aten.exp*") as filtered:
        step()
    with nbkit.opcheck() as checked:
        step()
    filtered.frames["findings"] = checked.findings
    for trace, what in ((bare, "has neither diffs nor findings"), (filtered, "was recorded with filters")):
        with pytest.raises(nbkit.OptionError, match=f"^only= .*{what}"):
            captured(tmp_path / "calls", step, only=trace)


def test_a_full_folder_ends_with_whole_calls(tmp_path):
    trace = captured(tmp_path / "calls", max_bytes=20_000)
    kept = records(tmp_path / "calls")
    assert 0 < len(kept) == trace.meta["captured_calls"] < 90
    assert sum(file.stat().st_size for file in (tmp_path / "calls").glob("*.jsonl")) < 20_000
    assert trace.meta["skipped"]["not captured: max_bytes=20,000 is used up"] > 10
    assert "max_bytes=20,000 is used up" in trace.meta["notes"]
    assert nbkit.opreplay(tmp_path / "calls").meta["identical_calls"] == len(kept)


def test_after_a_call_that_does_not_fit_smaller_ones_are_left_out_too(tmp_path):
    small, large = torch.ones(2), torch.ones(5000)
    trace = captured(tmp_path / "calls", lambda: (small.exp(), large.exp(), small.sin()), max_bytes=10_000)
    assert trace.captures["op"].tolist() == ["aten.exp.default"]
    assert trace.meta["skipped"]["not captured: max_bytes=10,000 is used up"] == 2


KILLED = """
import os, signal, sys, time, torch, nbkit
from nbkit.trace.calls import writing
writing.EVERY_S = 0.01
with nbkit.opcapture(sys.argv[1]):
    for number in range(200):
        torch.full((500,), float(number)).cumsum(0)
        time.sleep(0.004)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_leaves_whole_calls(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run([*PYTHON, "-c", KILLED, str(tmp_path / "calls")], env=environment)
    assert done.returncode != 0
    meta = nbkit.opreplay(tmp_path / "calls").meta
    assert meta["identical_calls"] == meta["captured_calls"] > 100
    assert meta["skipped"] == {}


def test_a_call_that_raises_is_kept_with_what_it_raised(tmp_path):
    with pytest.raises(RuntimeError), nbkit.opcapture(tmp_path / "calls") as trace:
        torch.ones(2, 3) @ torch.ones(2, 3)
    kept = records(tmp_path / "calls")[-1]
    assert (
        kept["op"] == "aten.mm.default"
        and kept["raised"].startswith("RuntimeError: ")
        and "mat1 and mat2" in kept["raised"]
    )
    assert trace.frames["captures"]["raised"].iloc[-1] == kept["raised"]


def test_a_full_disk_does_not_end_the_step(tmp_path, monkeypatch):
    class Full(PythonFileWriter):
        def _write(self, *_):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("nbkit.capture.operators.capturing.PythonFileWriter", Full)
    if library() is not None:
        monkeypatch.setattr(library(), "FileWriter", Full)
    monkeypatch.setattr("nbkit.trace.calls.shards.BLOCK", 1000)
    trace = captured(tmp_path / "calls")
    reason = "not captured: the folder cannot be written to (No space left on device)"
    assert trace.meta["skipped"][reason] > 10 and len(trace.captures) == len(records(tmp_path / "calls")) == 0
    (note,) = trace.meta["notes"]
    assert note.endswith(f"{tmp_path / 'calls'}: no space left on device; free space or choose another place.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folder": None}, "folder must be a path, got None; give the folder that the calls are to be saved in."),
        ({"max_bytes": 0}, "max_bytes must be a size, got 0; give a number of bytes above 0."),
        ({"max_bytes": float("inf")}, "max_bytes must be a size, got inf; give a number of bytes above 0."),
        ({"only": 3}, "only is expected to be a trace, and this is a int"),
        ({"calls": "x"}, "calls='x' names no calls"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(tmp_path, options, message):
    with pytest.raises(nbkit.OptionError) as error:
        nbkit.opcapture(**{"folder": tmp_path / "calls", **options})
    assert str(error.value).startswith(message)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(nbkit.TraceError, match="is not empty and holds no captured calls"), nbkit.opcapture(tmp_path):
        torch.ones(1).add(1)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_an_older_capture_is_replaced(tmp_path):
    captured(tmp_path / "calls")
    captured(tmp_path / "calls", lambda: torch.ones(2).neg(), ops="aten.neg")
    assert [record["op"] for record in records(tmp_path / "calls")] == ["aten.neg.default"]
    assert len((tmp_path / "calls" / CALLS).read_bytes().splitlines()) == 1


def test_a_tensor_can_still_be_resized(tmp_path):
    x = torch.zeros(2)
    with nbkit.opcapture(tmp_path / "calls"):
        x.add(1)
        x.resize_(1000)
    assert x.shape == (1000,) and np.asarray(x).shape == (1000,)


def test_a_call_that_cannot_be_stored_runs_and_is_counted_with_the_reason(tmp_path, monkeypatch):
    def refused(self, content):
        raise ValueError("no such number")

    monkeypatch.setattr(CallWriter, "store", refused)
    with nbkit.opcapture(tmp_path / "calls", ops="aten.mul") as trace:
        made = torch.ones(2) * 3
    assert made.tolist() == [3, 3] and not len(trace.captures)
    assert trace.meta["skipped"]["not captured: aten.mul.Tensor: ValueError: no such number"] == 1
