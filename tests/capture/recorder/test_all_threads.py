"""threads="all": the ops of every thread are rows, each with its own module, line and forward op."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import pandas as pd
import pytest
import torch

import nbkit
from nbkit.capture.native.library import library
from nbkit.errors import OptionError
from tests.capture.models import aten, record, recorded_ops, train_step

NATIVE = pytest.mark.skipif(library() is None, reason="the native recorder is not built")


def in_a_thread(work):
    thread = Thread(target=work)
    thread.start()
    thread.join()


@NATIVE
def test_a_step_in_a_thread_has_the_rows_that_it_has_here():
    step = train_step("mlp")
    step()
    here = record(step)
    there = record(lambda: in_a_thread(step), threads="all")
    assert recorded_ops(there) == recorded_ops(here)
    assert set(aten(there)["thread"]) == {1}
    mine, other = aten(here).reset_index(drop=True), aten(there).reset_index(drop=True)
    for name in ("op", "module", "module_call", "step"):
        pd.testing.assert_series_equal(mine[name], other[name])
    assert other["forward_op_id"].notna().tolist() == mine["forward_op_id"].notna().tolist()
    backward = other["forward_op_id"].notna()
    assert forward_names(there) == forward_names(here) and backward.sum() > 10
    assert not [reason for reason in there.meta["skipped"] if "threads" in reason]


def forward_names(trace):
    rows = aten(trace)
    linked = rows[rows["forward_op_id"].notna()]
    return list(zip(linked["op"], trace.ops.set_index("op_id")["op"].loc[linked["forward_op_id"]], strict=True))


@NATIVE
def test_threads_that_run_at_once_keep_apart():
    models = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)) for _ in range(4)]
    ready = Barrier(4)

    def train(model):
        ready.wait()
        for _ in range(30):
            model(torch.ones(3, 4)).sum().backward()

    def step():
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(train, models))
        torch.ones(2).exp()

    trace = record(step, threads="all")
    rows = aten(trace)
    assert set(rows["thread"]) == {0, 1, 2, 3, 4}
    assert rows[rows["thread"] == 0]["op"].tolist() == ["aten.ones.default", "aten.exp.default"]
    each = [rows[rows["thread"] == number] for number in range(1, 5)]
    assert len({tuple(one["op"]) for one in each}) == 1 and len(each[0]) > 30 * 10
    threads = rows.set_index("op_id")["thread"]
    linked = rows[rows["forward_op_id"].notna()]
    assert (threads.loc[linked["forward_op_id"]].to_numpy() == linked["thread"].to_numpy()).all()
    tanh = rows[rows["op"] == "aten.tanh_backward.default"]
    assert set(trace.ops.set_index("op_id")["op"].loc[tanh["forward_op_id"]]) == {"aten.tanh.default"}
    assert len(tanh) == 120 and set(tanh["module"]) == {"1"} and tanh["model"].nunique() == 4


@NATIVE
def test_threads_one_after_the_other_are_different_threads():
    """The system gives a thread the number of one that has ended, and autograd counts anew in it."""

    def chain(length):
        y = torch.ones(3, requires_grad=True)
        for _ in range(length):
            y = y.tanh()
        y.exp().sum().backward()

    def step():
        for length in (5, 3, 9):
            in_a_thread(lambda: chain(length))

    trace = record(step, threads="all")
    assert aten(trace)["thread"].unique().tolist() == [1, 2, 3]
    backward = {"aten.tanh_backward.default": "aten.tanh.default", "aten.mul.Tensor": "aten.exp.default"}
    links = [(op, forward) for op, forward in forward_names(trace) if op in backward]
    assert len(links) == 5 + 3 + 9 + 3 and all(backward[op] == forward for op, forward in links)


@NATIVE
def test_a_backward_pass_in_another_thread_is_linked_to_no_wrong_op():
    x = torch.ones(3, requires_grad=True)
    loss = x.exp().sum()

    def elsewhere():
        (torch.ones(3, requires_grad=True) * 2).sum()
        loss.backward()

    trace = record(lambda: in_a_thread(elsewhere), threads="all")
    assert trace.ops[trace.ops["op"] == "aten.mul.Tensor"]["forward_op_id"].isna().all()


@NATIVE
def test_opcheck_finds_what_goes_wrong_in_a_thread():
    with nbkit.opcheck(threads="all") as trace:
        in_a_thread(lambda: torch.zeros(2).log())
    assert trace.findings["op"].tolist() == ["aten.log.default"]
    assert "test_all_threads.py" in trace.findings["source"][0]


@NATIVE
def test_it_leaves_nothing_behind():
    native = library()
    with nbkit.optrace(threads="all"):
        torch.ones(2)
    assert native.observing() == 0


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (lambda: nbkit.optrace(threads="each"), "threads='each' is not known"),
        (lambda: nbkit.optrace(threads="all", values="stats"), "record the step once with each"),
        (lambda: nbkit.opcheck(threads="all", stop=True), "record the step once with each"),
    ],
)
def test_what_cannot_be_had_is_refused(start, sentence):
    with pytest.raises(OptionError, match=sentence):
        start()


def test_it_needs_the_native_recorder(monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", "python")
    with pytest.raises(OptionError, match="threads needs the built recorder"):
        nbkit.optrace(threads="all")
