"""What the library records of a call is what Python records of it; and what runs is what runs without a recording."""

import re
from array import array
from collections import Counter
from contextlib import suppress
from errno import EISDIR, ENOENT
from functools import partial
from itertools import accumulate, pairwise
from zlib import crc32

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn
from torch.utils.checkpoint import checkpoint

import nbkit
from bench.captured.counted import calls
from nbkit.capture.calls.rebuilding import BuiltCall
from nbkit.capture.native.library import library
from nbkit.capture.operators.capturing import Capturing
from nbkit.capture.operators.observed_calls import CAUGHT, ObservedCalls
from nbkit.trace.calls.file_writer import PythonFileWriter
from nbkit.trace.calls.layout import CALLS
from nbkit.trace.calls.reading import CallFolder
from tests.capture.operators.folders import captured, needs_overload_names, problems, records, training_step

pytestmark = pytest.mark.skipif(library() is None, reason="torch's observer needs the native recorder")


@pytest.mark.parametrize(
    "ends", [[], [0], [0, 1], [1, 1, 5], [16, 100, 4195, 70_000], [70_000], [*accumulate(range(99))]]
)
def test_the_library_writes_contents_as_python_does(tmp_path, ends):
    block, paths = (
        memoryview(np.random.default_rng(0).bytes(70_000)),
        [tmp_path / name / "v.safetensors" for name in ("a", "\u00e4 b")],
    )
    for path, files in zip(paths, (PythonFileWriter(), library().FileWriter()), strict=True):
        path.parent.mkdir()
        lines = [b"one\n", "\u00e4\n".encode()]
        head_bytes = files.submit((path, 7, block, array("q", ends)), path.with_name(CALLS), lines).result()
        assert path.stat().st_size == head_bytes + (ends[-1] if ends else 0)
        assert sorted(file.name for file in path.parent.iterdir()) == [CALLS, "v.safetensors"]
        assert files.submit(None, path.with_name(CALLS), [b"\0\n"]).result() == 0
        assert path.with_name(CALLS).read_bytes() == b"".join(lines) + b"\0\n"
        files.shutdown()
    assert paths[0].read_bytes() == paths[1].read_bytes()
    names = [f"{number}-{crc32(block[start:end]):08x}" for number, (start, end) in enumerate(pairwise([0, *ends]), 7)]
    assert sorted(load_file(paths[1])) == sorted(names)


@pytest.mark.parametrize("writer", ["python", "library"])
@pytest.mark.parametrize("is_there", [False, True])
def test_contents_that_cannot_be_written_leave_nothing(tmp_path, writer, is_there):
    files = PythonFileWriter() if writer == "python" else library().FileWriter()
    path = tmp_path / "calls" / "v.safetensors"
    if is_there:
        path.mkdir(parents=True)  # a folder has the name
    jobs = [
        files.submit((path, 0, memoryview(b"1234"), array("q", [4])), tmp_path / CALLS, [b"1\n"]),
        files.submit(
            (tmp_path / "next.safetensors", 1, memoryview(b"5678"), array("q", [4])), tmp_path / CALLS, [b"2\n"]
        ),
    ]
    for job in jobs:
        with pytest.raises(OSError) as caught:
            job.result()
        assert caught.value.errno == (EISDIR if is_there else ENOENT) and job.done()
    files.shutdown()
    assert not (tmp_path / CALLS).exists() and not [*tmp_path.rglob("*.part")]


def recurrent():
    model = nn.GRU(5, 8, batch_first=True)
    x = torch.randn(3, 6, 5)
    return lambda: model(x)[0].sum().backward()


def parts_of_large_memory():
    base = torch.randn(64, 1024)  # 256 KB
    few, most = base[3, :16], base[8:]

    def step():
        few.mul(2)
        most.add(1)
        few.mul(3)
        few.add_(1)
        few.mul(2)
        torch.cat([few, base[5, :16]])
        base.sum()
        few.mul(2)

    return step


def sizes_by_values():
    x = torch.tensor([0.0, 1.0, 2.0, 0.0])

    def step():
        for value in range(3):
            (x > value).nonzero()
            x[x > value].sum().item()

    return step


def settings():
    layer, x = nn.Linear(8, 8), torch.randn(4, 8)

    def step():
        with torch.autocast("cpu", torch.bfloat16):
            checkpoint(layer, x, use_reentrant=False).sum().backward()
        with torch.inference_mode():
            layer(x)
        with torch.no_grad():
            layer(x)
        torch.clamp(x, min=0).flatten()[2:7].view(5).t().contiguous().index_fill_(0, torch.tensor([1]), 2.5)
        torch.scalar_tensor(2, dtype=torch.float64).to(torch.complex64).conj().clone()
        torch._foreach_add_([x[0], x[1]], 1.0)
        x[:0].add_(1), x.expand(2, 4, 8).sum((0, 1)), x.resize_(2, 16).neg_()

    return step


def draws():
    generator, x = torch.Generator().manual_seed(3), torch.randn(40)

    def step():
        for _ in range(3):
            nn.functional.dropout(x, 0.5)
            x.bernoulli_(0.3).add_(torch.rand(40)).normal_()
            torch.rand(2, generator=generator)
            torch.randperm(9)

    return step


def sparse_layouts():
    # Where places meet, results have memory that nothing has written to.
    indices, others = torch.tensor([[0, 3, 1, 1], [2, 0, 2, 1]]), torch.tensor([[0, 3, 2, 1], [1, 1, 0, 0]])
    dense, square = torch.randn(3, 5, requires_grad=True), torch.arange(16.0).view(4, 4)
    compressed = [square.to_sparse_csr(), square.to_sparse_csc(), square.to_sparse_bsr(2), square.to_sparse_bsc(2)]

    def step():
        for values in (torch.ones(4), torch.ones(4, 2), torch.ones(4)):
            one, other = (torch.sparse_coo_tensor(at, values, (4, 3, *values.shape[1:])) for at in (indices, others))
            ordered = one.coalesce()
            (ordered + other.coalesce()).to_dense()
            if ordered.dim() == 2:
                torch.sparse.mm(ordered, dense).square().sum().backward()
                one.mul_(2).add_(other)  # has other memory afterwards
            one.zero_()
        for one in compressed:
            one.values().neg_()
            (one * 2).to_dense()
        compressed[0] @ square

    return step


def results_that_are_numbers():
    values = [0.1, 1.0, -0.0, 1e-7, 1e16, 1e22, 5e-324, float("nan"), float("inf"), -float("inf")]
    reals, whole, yes = torch.tensor(values, dtype=torch.float64), torch.tensor(2**53 + 1), torch.tensor(True)

    def step():
        for real in reals:
            real.item()
            torch.complex(real, -real).item()
        reals.float()[0].item(), whole.item(), yes.item(), (whole == 3).item()
        torch.equal(reals, reals), torch.equal(whole, yes)
        torch.ones(3).mul(reals[1].item()).add(reals[3].item()).clamp(reals[9].item(), 1e16)

    return step


def given_results():
    x, one, whole, large = torch.randn(6, 4), torch.ones(()), torch.zeros(20), torch.zeros(64, 1024)

    def step():
        out, empty, other = torch.zeros(6, 4), torch.empty(0), torch.empty(0)
        for held in (out, empty, empty, torch.zeros(24).as_strided((6, 4), (1, 6))):  # the first time it is resized
            torch.maximum(x, one, out=held)
        torch.add(x[0], 1, out=whole[8:12]), torch.add(x[1], 1, out=whole[8:12])
        for value in range(3):
            torch.add(x[2], value, out=large[5, :4]), torch.add(x[2], value, out=large[5, :4])
            large[5, :8].neg()
        torch.add(x, x, out=x)
        for _ in range(2):
            torch.sort(x, out=(other, torch.empty(0, dtype=torch.int64)))
        torch.exp(x, out=torch.zeros(6, 4, dtype=torch.float64))
        whole.sum()

    return step


def saved(folder):
    """The records of a folder, with checksums for contents: their numbers tell which was stored first."""
    opened = CallFolder(folder)
    named = re.compile(r"('before'|'after'|'state'): '(\d+)'")
    return [named.sub(lambda found: f"{found[1]}: {crc32(opened.content(found[2]))}", str(one)) for _, one in opened]


MADE = [
    training_step,
    recurrent,
    parts_of_large_memory,
    sizes_by_values,
    settings,
    draws,
    given_results,
    sparse_layouts,
    results_that_are_numbers,
]


@pytest.mark.parametrize("make", MADE)
def test_the_library_records_what_python_records(tmp_path, monkeypatch, make):
    def made(name):
        torch.manual_seed(0)
        step = make()
        torch.manual_seed(1)
        trace = captured(tmp_path / name, step)
        # Checkpoints end a call that runs again once all that is needed is there.
        assert {n for n in trace.meta["skipped"] if n.startswith("not captured")} <= {f"not captured: {CAUGHT}"}
        return trace

    with monkeypatch.context() as patch:
        patch.setattr(Capturing, "_ask_each", lambda self: None)  # each call is Python's
        by_python = made("python")
    made("first")
    by_library = made("library")
    assert saved(tmp_path / "library") == saved(tmp_path / "first") == saved(tmp_path / "python")
    columns = ["op", "call", "op_id", "module", "phase", "source"]
    assert by_library.captures[columns].equals(by_python.captures[columns])
    replay = nbkit.opreplay(tmp_path / "library")
    assert problems(replay) == [] and replay.meta["identical_calls"] == len(by_library.captures) > 5


@pytest.mark.parametrize("make", MADE)
def test_memory_that_is_read_by_copies_as_that_of_a_device_gives_the_same_records(tmp_path, monkeypatch, make):
    for name, copies in (("in place", False), ("copied", True)):
        with monkeypatch.context() as patch:
            patch.setattr(library(), "Contents", partial(library().Contents, copies=copies))
            torch.manual_seed(0)
            step = make()
            torch.manual_seed(1)
            captured(tmp_path / name, step)
    assert saved(tmp_path / "copied") == saved(tmp_path / "in place")


@pytest.mark.parametrize("size", [5000, 5001, 8192])
def test_what_writes_to_copied_memory_without_an_op_is_seen(tmp_path, monkeypatch, size):
    monkeypatch.setattr(library(), "Contents", partial(library().Contents, copies=True))
    x = torch.zeros(size, dtype=torch.uint8)

    def step():
        x.clone(), x.clone()
        x.numpy()[3] = 7
        x.clone()

    captured(tmp_path / "calls", step)
    folder = CallFolder(tmp_path / "calls")
    named = [record["storages"][0]["before"] for _, record in folder if record["op"] == "aten.clone.default"]
    assert named[0] == named[1] != named[2] and folder.content(named[2])[3] == 7


@pytest.mark.parametrize("size", [8192, 8200, 100_000])
def test_what_numpy_shuffles_in_copied_memory_is_seen(tmp_path, monkeypatch, size):
    monkeypatch.setattr(library(), "Contents", partial(library().Contents, copies=True))
    x = torch.arange(size)

    def step():
        x.clone()
        np.random.default_rng(0).shuffle(x.numpy())
        x.clone()

    captured(tmp_path / "calls", step)
    folder = CallFolder(tmp_path / "calls")
    named = [record["storages"][0]["before"] for _, record in folder if record["op"] == "aten.clone.default"]
    assert len(set(named)) == 2 and folder.content(named[1]).tobytes() == x.numpy().tobytes()


@pytest.mark.parametrize("part", [(Capturing, "add_lines"), (ObservedCalls, "state_text")])
def test_ctrl_c_during_work_of_ours_is_for_the_step(tmp_path, monkeypatch, part):
    bare, interrupts = getattr(*part), [KeyboardInterrupt]

    def interrupted(self, *arguments):
        if interrupts:
            raise interrupts.pop()
        return bare(self, *arguments)

    monkeypatch.setattr(*part, interrupted)
    with pytest.raises(KeyboardInterrupt), nbkit.opcapture(tmp_path / "calls") as trace:
        for number in range(3000):
            with torch.set_grad_enabled(number % 2 == 0):
                torch.ones(3).exp()
    assert not interrupts and trace.meta["error"]["type"] == "KeyboardInterrupt"
    assert len(trace.captures) < 3000


@pytest.mark.parametrize("make", [*MADE[:3], sparse_layouts, draws, results_that_are_numbers])
def test_the_library_records_what_is_usual_itself(tmp_path, monkeypatch, make):
    asked, step = [], make()
    for name in ("before", "begun_again"):
        monkeypatch.setattr(ObservedCalls, name, lambda self, func, *arguments: asked.append(str(func)))
    captured(tmp_path / "calls", step)
    assert set(asked) <= {"aten.transpose_.default"}  # an op that changes a tensor's metadata in place


@needs_overload_names
def test_what_runs_is_what_runs_without_a_recording(tmp_path):
    def step():
        x = torch.ones(4, requires_grad=True)
        first, second = x * 2, x * 3
        (first * second + first.exp() + second.exp()).sum().backward()

    captured(tmp_path / "calls", step)
    found = Counter(op.removeprefix("aten.") for op in captured(tmp_path / "calls", step).captures["op"])
    assert found == calls(step) and found["add_.Tensor"] > 0  # gradients are added in place


def test_calls_that_opdiff_found_wrong_are_found_again_though_a_mode_changes_what_runs(tmp_path):
    def step():
        x = torch.ones(4, requires_grad=True)
        (x * 2 + x * 3).sum().backward()

    with nbkit.opdiff() as flagged:
        step()
    ops, diffs = flagged.ops, flagged.frames["diffs"]
    summed = ops.index[(ops["op"] == "aten.add.Tensor") & (ops["phase"] == "backward")]
    diffs.loc[diffs["op_id"].isin(summed), "status"] = "mismatch"
    trace = captured(tmp_path / "calls", step, only=flagged)
    assert trace.captures[["op", "phase"]].to_numpy().tolist() == [["aten.add.Tensor", "backward"]]


def test_parameters_can_be_made_in_the_step(tmp_path):
    for _ in range(2):
        made = []
        captured(tmp_path / "calls", lambda made=made: made.append(nn.Linear(3, 2)))
        assert isinstance(made[0].weight, nn.Parameter)
    ops = {record["op"] for record in records(tmp_path / "calls")}
    assert {"aten.empty.memory_format", "aten.uniform_.default", "aten.detach.default"} <= ops


def test_a_call_whose_error_the_step_caught_is_counted(tmp_path):
    def step():
        for _ in range(2):
            with pytest.raises(RuntimeError):
                torch.ones(2, 3) @ torch.ones(2, 3)
        torch.ones(2) * 2

    for _ in range(2):
        trace = captured(tmp_path / "calls", step)
        assert trace.meta["skipped"][f"not captured: {CAUGHT}"] == 2
        assert trace.captures["op"].tolist().count("aten.mm.default") == 0


def test_the_call_whose_error_ends_the_step_is_kept_though_others_follow_it(tmp_path):
    a, b = torch.ones(2, 3), torch.ones(3, 2)
    with pytest.raises(RuntimeError), nbkit.opcapture(tmp_path / "calls") as trace:
        a @ b
        a @ a
    kept = records(tmp_path / "calls")[-1]
    assert kept["raised"].startswith("RuntimeError: ") and "mat1 and mat2" in kept["raised"] and kept["number"] == 1
    assert trace.captures["raised"].iloc[-1] == kept["raised"]


@pytest.mark.parametrize("own", [None, torch.Generator()], ids=["default", "own"])
def test_the_state_of_a_call_that_draws_is_that_before_it_though_it_has_run(own, tmp_path):
    for shares in ((0.5, 0.2), (0.5, 0.2, 1.5)):  # the kind is known when the second one raises
        (own or torch.default_generator).manual_seed(0)
        with suppress(RuntimeError), nbkit.opcapture(tmp_path / "calls") as trace:
            for share in shares:
                torch.bernoulli(torch.full((30,), share), generator=own)
    drawn = [record for record in records(tmp_path / "calls") if record["op"] == "aten.bernoulli.default"]
    assert ["raised" in record for record in drawn] == [False, False, True]
    states = {(record["generator"] if own is None else record["generators"][0])["state"] for record in drawn}
    assert len(states) == 3
    content = CallFolder(tmp_path / "calls").content
    assert [BuiltCall(record, content).args[0][0].item() for record in drawn] == pytest.approx([0.5, 0.2, 1.5])
    replay = nbkit.opreplay(tmp_path / "calls")
    assert problems(replay) == [] and replay.meta["identical_calls"] == len(trace.captures) == 6


def test_a_full_folder_stops_the_library_as_well(tmp_path):
    x = torch.ones(1000)

    def step():
        for number in range(20):
            x * (number + 0.5)

    captured(tmp_path / "calls", step)
    trace = captured(tmp_path / "calls", step, max_bytes=30_000)
    count = len(trace.captures)
    assert 3 < count < 20 and len(records(tmp_path / "calls")) == count
    assert trace.meta["skipped"]["not captured: max_bytes=30,000 is used up"] == 20 - count
    assert nbkit.opreplay(tmp_path / "calls").meta["identical_calls"] == count


def test_parameters_of_any_name_are_referred_to(tmp_path):
    weights = {'a "name"\\ ö': torch.randn(40, 40)}

    def step():
        weights['a "name"\\ ö'].exp()

    for _ in range(2):
        captured(tmp_path / "calls", step, parameters=weights)
        (record,) = records(tmp_path / "calls")
        assert record["storages"][0]["before"].endswith('a "name"\\ ö')
        assert nbkit.opreplay(tmp_path / "calls", parameters=weights).meta["identical_calls"] == 1


def test_memory_that_no_op_has_written_to_is_seen_to_have_changed(tmp_path):
    x = torch.zeros(5000)
    outside = x.numpy()

    def step():
        x.exp()
        outside[7] = 1.0
        x.exp()

    for _ in range(2):
        outside[7] = 0.0
        captured(tmp_path / "calls", step)
        before, after = (record["storages"][0]["before"] for record in records(tmp_path / "calls"))
        assert before != after
        assert nbkit.opreplay(tmp_path / "calls").meta["identical_calls"] == 2
