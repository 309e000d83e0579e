"""What a folder of captured calls holds of memory in parts and of quiet copies, and what is told of it."""

import multiprocessing
import shutil

import torch

import nbkit
from nbkit.capture.native.library import library
from tests.capture.operators.folders import captured, problems, records


def test_a_part_of_memory_that_is_stored_whole_is_not_stored_again(tmp_path):
    x, part = torch.randn(100_000), slice(30_000, 52_000)

    def step():
        x.sin(), x[part].cos()
        x.numpy()[part.start] = 7.0  # from here on it is other memory
        x[part].tan()

    trace = captured(tmp_path / "calls", step, ops="aten.sin, aten.cos, aten.tan")
    # The whole, its sine, cosine and tangent of the part, and the part as it was for the last.
    assert trace.meta["captured_bytes"] < 1.01 * (2 * x.nbytes + 3 * x[part].nbytes)
    replayed = nbkit.opreplay(tmp_path / "calls")
    assert problems(replayed) == [] and replayed.meta["identical_calls"] == 3


def test_of_a_view_that_turns_out_to_be_a_copy_the_values_are_stored(tmp_path):
    library = torch.library.Library("nbkit_quiet_copy", "DEF")
    library.define("seen(Tensor(a) x) -> Tensor(a)")
    library.impl("seen", lambda x: x.clone(), "CompositeExplicitAutograd")
    try:
        captured(tmp_path / "calls", lambda: torch.ops.nbkit_quiet_copy.seen(torch.randn(50)), ops="nbkit_quiet_copy.*")
        ((before, after),) = [record["storages"] for record in records(tmp_path / "calls")]
        assert before["before"] == after["after"]
        trace = nbkit.opreplay(tmp_path / "calls", libraries="nbkit_quiet_copy")
        assert trace.meta["identical_calls"] == 1
    finally:
        library._destroy()


def test_what_a_call_that_cannot_be_captured_writes_is_seen(tmp_path):
    library = torch.library.Library("nbkit_turn", "DEF")
    library.define("turn_(Tensor(a!) x, Tensor other) -> ()")

    def turn(x, other):
        x.copy_(x.flip(0))

    library.impl("turn_", turn, "CompositeExplicitAutograd")
    x, quantized = torch.arange(100_000), torch.quantize_per_tensor(torch.ones(1), 1.0, 0, torch.quint8)

    def step():
        x.argmax()
        torch.ops.nbkit_turn.turn_(x, quantized)  # the sum of the words stays
        x.argmax()

    try:
        trace = captured(tmp_path / "calls", step, ops="aten.argmax, nbkit_turn.*")
    finally:
        library._destroy()
    assert trace.meta["skipped"]["not captured: it has quantized tensors"] == 1
    replayed = nbkit.opreplay(tmp_path / "calls")
    assert (replayed.meta["identical_calls"], problems(replayed)) == (2, [])


def test_what_a_captured_call_writes_is_seen_by_the_next(tmp_path):
    x = torch.arange(100_000)
    captured(tmp_path / "calls", lambda: (x.argmax(), x.copy_(x.flip(0)), x.argmax()), ops="aten.argmax, aten.copy_")
    replayed = nbkit.opreplay(tmp_path / "calls")
    assert (replayed.meta["identical_calls"], problems(replayed)) == (3, [])


def test_a_result_that_makes_room_for_itself_is_stored_whole(tmp_path):
    step = lambda: torch.add(torch.ones(4, 4), 1, out=torch.empty(0))  # noqa: E731
    captured(tmp_path / "calls", step, ops="aten.add")
    (record,) = records(tmp_path / "calls")
    assert len([storage for storage in record["storages"] if "after" in storage]) == 1
    assert nbkit.opreplay(tmp_path / "calls").meta["identical_calls"] == 1


def test_an_empty_part_of_a_large_memory_takes_no_room(tmp_path):
    cache = torch.randn(1000, 1000)
    step = lambda: torch.cat([cache[0, :0], cache[500, 10:20]])  # noqa: E731
    assert captured(tmp_path / "calls", step, ops="aten.cat").meta["captured_bytes"] < 4000
    assert nbkit.opreplay(tmp_path / "calls").meta["identical_calls"] == 1


def test_markers_are_no_calls(tmp_path):
    def step():
        with torch.profiler.record_function("mine"):
            torch.ones(2).exp()

    trace = captured(tmp_path / "calls", step)
    assert trace.captures["op"].tolist() == ["aten.ones.default", "aten.exp.default"]
    # torch's observer does not tell of them as ops.
    skipped = trace.meta["skipped"].get("not captured: metadata ops (no tensor computation)", 0)
    assert skipped == (2 if library() is None else 0)


def test_only_takes_the_calls_that_opcheck_found(tmp_path):
    def step():
        x = torch.tensor([4.0, -1.0])
        x.abs().sqrt(), x.sqrt(), x.neg().log()

    with nbkit.opcheck() as flagged:
        step()
    trace = captured(tmp_path / "calls", step, only=flagged)
    assert trace.captures[["op", "call"]].to_numpy().tolist() == [["aten.sqrt.default", 1], ["aten.log.default", 0]]
    assert trace.meta["skipped"]["not captured: calls that only= does not name"] > 3


def test_a_folder_that_is_gone_at_the_end_is_told_and_the_trace_is_there(tmp_path):
    trace = captured(tmp_path / "calls", lambda: (torch.ones(2).sin(), shutil.rmtree(tmp_path / "calls")), ops="sin")
    assert trace.captures["op"].tolist() == [] and trace.complete
    assert trace.meta["skipped"]["not captured: the folder cannot be written to (No such file or directory)"] == 1
    assert trace.meta["notes"] == [
        f"Not all captured calls could be written to {tmp_path / 'calls'}: no such file or directory; free space or "
        "choose another place."
    ]
    assert not (tmp_path / "calls").exists()


def test_processes_that_are_forked_in_the_step_leave_the_folder_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("nbkit.trace.calls.shards.BLOCK", 1000)
    x = torch.randn(1000)

    def work():
        for _ in range(20):
            x.cos_()

    def step():
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join()
        x.sin()

    trace = captured(tmp_path / "calls", step)
    assert not any("cannot be written" in reason for reason in trace.meta["skipped"]) and trace.meta["notes"] == []
    replay = nbkit.opreplay(tmp_path / "calls")
    assert replay.meta["identical_calls"] == replay.meta["captured_calls"] == len(trace.captures) == 1


def test_higher_order_ops_are_left_out_with_the_reason(tmp_path):
    x, cond = torch.ones(2), torch.ops.higher_order.cond
    trace = captured(tmp_path / "calls", lambda: cond(torch.tensor(True), torch.sin, torch.cos, (x,)))
    skipped = trace.meta["skipped"].get("not captured: higher-order ops: torch runs their parts below", 0)
    assert skipped == (1 if library() is None else 0)
    # The observer sees its parts.
    assert trace.captures["op"].tolist().count("aten.sin.default") == (0 if library() is None else 1)


def test_progress_says_how_many_calls_and_how_much_memory_were_captured(tmp_path):
    tool = nbkit.opcapture(tmp_path / "calls", ops="sin")
    (observer,) = tool.observers
    with tool:
        torch.ones(256).sin()
        assert observer.progress().startswith("1 call captured, 2")
