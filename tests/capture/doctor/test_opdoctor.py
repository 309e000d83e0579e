"""`opdoctor`: what it finds in one run, which bits it leaves, and what further runs add."""

import gc
import weakref
from contextlib import suppress
from functools import cache
from itertools import accumulate
from time import sleep

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import nbkit
from nbkit.capture.raw.running import running
from nbkit.errors import OptionError
from tests.capture.identical import each_step, left_by

bare = cache(left_by)


def training(*, detached=False, divides=False):
    """A step of a small model; with a layer that is cut off, or a 0 / 0 in the loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = torch.randn(6, 8), torch.randint(0, 4, (6,))

    def step():
        hidden = model[1](model[0](x))
        out = model[2](hidden.detach() if detached else hidden)
        loss = F.cross_entropy(out / (out * 0) if divides else out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


@each_step
def test_opdoctor_leaves_the_step_as_it_is(name, dtype):
    doctor = nbkit.opdoctor()
    assert left_by(name, dtype, doctor) == bare(name, dtype)
    assert doctor.trace.complete
    assert running() == []


def test_a_right_step_is_said_to_be_right_with_time_and_peak():
    trace = nbkit.opdoctor().run(training())
    assert len(trace.findings[trace.findings["severity"] != "hint"]) == 0
    text = trace.brief()
    assert "Nothing wrong found." in text or "No errors and no warnings." in text
    assert "At most " in text and "Peak memory " in text


@pytest.mark.parametrize(
    ("fault", "rule", "op"), [("detached", "no_gradient", "aten.detach"), ("divides", "inf", "aten.div")]
)
def test_one_run_looks_at_training_and_at_values(fault, rule, op):
    trace = nbkit.opdoctor().run(training(**{fault: True}))
    (first,) = [part for part in trace.brief().split("\n\n") if part.startswith("1. ")]
    assert f", {rule}: " in first
    assert op in first
    assert trace.meta["checked_tensors"] and len(trace.parameters) == 4 and len(trace.memory)


@pytest.mark.parametrize(("options", "runs", "timed"), [((0, 0), 1, 0), ((0, 1), 1, 0), ((2, 1), 3, 0), ((1, 4), 5, 3)])
def test_the_step_runs_as_often_as_asked(options, runs, timed):
    calls = []
    step = training()
    warmup, repeats = options
    trace = nbkit.opdoctor(warmup=warmup, repeats=repeats).run(lambda: calls.append(step()))
    assert (len(calls), trace.meta["step"]["runs"]) == (runs, timed)
    assert ("timings" in trace.frames) == (timed > 0)
    assert ("per step (median of 3 runs, IQR" in trace.brief()) == (timed == 3)


def test_the_timings_of_further_runs_belong_to_the_ops_of_the_first():
    trace = nbkit.opdoctor(repeats=3).run(training())
    ops = trace.ops.set_index("op_id")["op"].loc[trace.timings["op_id"]]
    assert {"aten.addmm.default", "aten._log_softmax.default", "aten.mm.default"} <= set(ops)
    assert (ops == "aten.addmm.default").sum() == 2
    assert set(trace.timings["repeats"]) == {2}


def test_other_ops_in_further_runs_have_no_timings():
    numbers = iter(range(3))

    def step():
        return torch.ones(3).exp() if next(numbers) else torch.ones(3).sin().exp().exp()

    trace = nbkit.opdoctor(repeats=3).run(step)
    assert trace.ops["op"].iloc[trace.timings["op_id"]].tolist() == ["aten.ones.default"]


@pytest.mark.parametrize("repeats", [2, 4])
def test_the_times_of_ops_are_those_of_the_timed_runs(repeats):
    trace = nbkit.opdoctor(repeats=repeats).run(training())
    ops = trace.ops.set_index("op_id").loc[trace.timings["op_id"]]
    assert ops["self_time_us"].to_numpy() == pytest.approx(trace.timings["median_us"].to_numpy())
    assert set(trace.timings["repeats"]) == {repeats - 1}
    parts = trace.ops.dropna(subset="parent_id").groupby("parent_id")["total_time_us"].sum()
    assert (trace.ops["total_time_us"].loc[parts.index].to_numpy() >= parts.to_numpy() - 1e-3).all()
    assert trace.memory["time_us"].is_monotonic_increasing


def test_hooks_are_no_part_of_the_time():
    with nbkit.opdoctor() as trace:
        pass
    assert trace.meta["step"]["time_us"] <= trace.meta["wall_us"]


def test_a_checkpoint_computes_no_more_than_torch_counts_and_reads_no_more_than_was_there():
    layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Sigmoid(), nn.Linear(8, 8)) for _ in range(2))
    x = torch.randn(4, 8)

    def step():
        out = x
        for layer in layers:
            out = checkpoint(layer, out, use_reentrant=False)
        out.sum().backward()

    with FlopCounterMode(display=False) as counter:
        step()
    layers.zero_grad()
    measured = nbkit.opdoctor().run(step).meta["step"]
    assert measured["flops"] == counter.get_total_flops()
    tensors = [x, *layers.parameters()]
    assert measured["held_bytes"] == sum(one.numel() * one.element_size() for one in tensors)


def test_flops_that_nobody_can_count_make_the_number_a_least_one():
    sparse, x = torch.eye(3).to_sparse(), torch.randn(3, 3)
    measured = nbkit.opdoctor().run(lambda: torch.sparse.mm(sparse, x @ x)).meta["step"]
    assert (measured["flops"], measured["uncounted_calls"]) == (2 * 3**3, 1)


def test_flops_are_those_that_torch_counts():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.Flatten(), nn.Linear(8 * 7 * 7, 4))
    x = torch.randn(2, 3, 16, 16)
    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    trace = nbkit.opdoctor().run(lambda: model(x).sum().backward())
    assert trace.meta["step"]["flops"] == counter.get_total_flops()
    assert trace.meta["step"]["uncounted_calls"] == 0


def test_the_peak_is_what_the_step_holds_without_our_copies():
    model, x = nn.Linear(256, 256, bias=False), torch.randn(64, 256)

    def step():
        hidden = model(x)
        return hidden.relu()

    gc.collect()  # what other tests left would be freed within the step
    measured = nbkit.opdoctor().run(step).meta["step"]
    held, made = 4 * (256 * 256 + 64 * 256), 2 * 4 * 64 * 256
    assert measured["held_bytes"] == held
    assert measured["peak_bytes"] == held + made  # a copy of the weight, which opaudit holds, is as large as all of it


def test_an_error_passes_through_and_what_was_seen_is_kept():
    with pytest.raises(ZeroDivisionError), nbkit.opdoctor() as trace:
        training(divides=True)()
        raise ZeroDivisionError
    assert (trace.complete, trace.findings["rule"].iloc[0]) == (False, "inf")
    assert running() == []


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_an_error_in_any_run_ends_all_and_is_told(at):
    numbers = iter(range(9))
    step = training()

    def failing():
        step()
        if next(numbers) == at:
            raise ZeroDivisionError("here")

    doctor = nbkit.opdoctor(warmup=1, repeats=4)
    with pytest.raises(ZeroDivisionError, match="here"):
        doctor.run(failing)
    assert (doctor.trace.complete, doctor.trace.meta["error"]["type"]) == (False, "ZeroDivisionError")
    assert doctor.trace.meta["step"]["runs"] == 0
    assert running() == []


def slow_reads(_number):
    """A step whose time goes into reads of single values."""
    x = torch.ones(2000)
    return sum(x[index].item() for index in range(2000))


def failing_later(number):
    slow_reads(number)
    if number:
        raise ZeroDivisionError


def test_runs_that_tell_no_times_leave_the_hints_of_the_first():
    numbers = iter(range(2))
    doctor = nbkit.opdoctor(repeats=2)
    with suppress(ZeroDivisionError):
        doctor.run(lambda: failing_later(next(numbers)))
    assert "scalar_reads" in set(doctor.trace.findings["rule"])
    assert doctor.trace.meta["step"]["runs"] == 0 and "unjudged" not in doctor.trace.meta


def test_what_a_profiler_of_the_step_took_is_said_first(tmp_path):
    def step():
        with torch.profiler.profile():
            torch.ones(3).exp()

    said = "Time and memory were not judged: another profiler began in the step and took the events."
    text = " ".join((trace := nbkit.opdoctor().run(step)).brief().split())
    assert text.startswith(said) and "Nothing wrong" not in text
    page = nbkit.opreport(trace, path=tmp_path / "report.html").read_text()
    assert page.count(said) >= 2 and "Nothing wrong" not in page  # the first screen, and its chapter


def test_the_time_without_recording_is_told_where_two_runs_warm_up():
    trace = nbkit.opdoctor(warmup=2, repeats=2).run(training())
    bare_us = trace.meta["step"]["bare_us"]
    assert bare_us > 0
    trace.meta["step"]["time_us"] = 10 * bare_us
    assert " without the recording)" in " ".join(trace.brief().split())


def test_a_step_without_ops_says_so():
    assert nbkit.opdoctor().run(lambda: None).brief().startswith("No op of torch ran in the step's thread")


def test_it_keeps_no_model_alive():
    def recorded():
        model, x = nn.Linear(3, 3), torch.ones(2, 3)
        doctor = nbkit.opdoctor(repeats=3)
        return doctor, doctor.run(lambda: model(x).sum().backward()), weakref.ref(model)

    _doctor, trace, model = recorded()
    gc.collect()
    assert model() is None
    assert len(trace.ops)


def test_a_recording_is_made_once():
    doctor = nbkit.opdoctor()
    doctor.run(training())
    with pytest.raises(OptionError, match="This opdoctor has been used already"):
        doctor.run(training())


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda: nbkit.opdoctor(repeats=-1), "repeats must be a whole number from 0 up, got -1."),
        (lambda: nbkit.opdoctor(warmup=1.5), "warmup must be a whole number from 0 up, got 1.5."),
        (lambda: nbkit.opdoctor(model=3), "model must be a module, got int"),
        (lambda: nbkit.opdoctor(optimizer=3), "optimizer=int has no param_groups"),
        (lambda: nbkit.opdoctor(model=[]), "model has no module in it; give a torch.nn.Module, or several."),
        (lambda: nbkit.opdoctor(repeats=True), "repeats must be a whole number from 0 up, got True."),
        (lambda: nbkit.opdoctor(name=3), "name must be a str, got int."),
        (lambda: nbkit.opdoctor().run(nbkit.opdoctor().__enter__), "opdoctor cannot run inside opdoctor; the outer"),
        (lambda: nbkit.opcost().run(nbkit.opdoctor().__enter__), "opdoctor cannot run inside opcost, which computes"),
        (lambda: nbkit.opdoctor(device="gpu"), "device='gpu' is not known"),
        (lambda: nbkit.opdoctor().run(3), "run() calls the step itself, and this is a int"),
        (lambda: nbkit.optime().run(lambda: nbkit.opdoctor().run(training())), "opdoctor cannot run inside optime"),
        (lambda: nbkit.opdoctor().run(lambda: nbkit.optime().run(training())), "optime cannot run inside opdoctor"),
    ],
)
def test_what_it_cannot_use_it_refuses_in_a_sentence(use, sentence):
    with pytest.raises((OptionError, TypeError)) as caught:
        use()
    assert sentence in str(caught.value)
    assert running() == []


@pytest.mark.parametrize("outer", [nbkit.optrace, nbkit.opcheck])
def test_what_is_timed_is_refused_inside_a_recording_before_anything_runs(outer):
    calls = []
    with outer(), pytest.raises(OptionError, match=f"optime cannot run inside {outer.verb}"):
        nbkit.opdoctor(repeats=2).run(lambda: calls.append(1))
    assert (calls, running()) == ([], [])


def test_a_timing_that_cannot_begin_leaves_what_was_seen():
    doctor = nbkit.opdoctor(repeats=2)
    with pytest.raises(OptionError, match="torch.profiler is running|A profiler is running"), doctor:
        doctor.begin_run()
        doctor.end_run()
        with torch.profiler.profile():
            doctor.begin_run()
    assert doctor.trace.meta["step"]["runs"] == 0
    assert running() == []


def test_a_block_that_was_to_be_repeated_says_how():
    message = r"a `with` block runs once; use nbkit.opdoctor\(repeats=N\).run\(step\)"
    with pytest.raises(OptionError, match=message), nbkit.opdoctor(repeats=3):
        training()()


def allocated_peak(step):
    """The most bytes that torch's own profiler sees allocated in a step."""
    with torch.profiler.profile(profile_memory=True) as profile:
        step()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(accumulate((event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())), initial=0))


def test_the_peak_is_that_of_torchs_profiler_each_time():
    gru, head = nn.GRU(32, 48, num_layers=2, bidirectional=True), nn.Linear(96, 7)
    parameters = [*gru.parameters(), *head.parameters()]
    x, y = torch.randn(12, 8, 32), torch.randint(0, 7, (96,))

    def step():
        fresh()
        optimizer = torch.optim.Adam(parameters)
        torch.nn.functional.cross_entropy(head(gru(x)[0]).view(96, 7), y).backward()
        optimizer.step()

    def fresh():
        for parameter in parameters:
            parameter.grad = None

    step()
    held = sum(tensor.nbytes for tensor in (*parameters, x, y))
    peaks = []
    for _ in range(3):
        fresh()
        peaks.append(nbkit.opdoctor().run(step).meta["step"]["peak_bytes"])
    fresh()
    assert peaks == pytest.approx([allocated_peak(step) + held] * 3, rel=0.02)


@pytest.mark.parametrize("data", [[0.0] * 100_000, np.zeros(100_000, np.float32)], ids=["list", "array"])
def test_what_the_step_makes_of_numbers_was_not_there_before(data):
    weight = torch.randn(4, requires_grad=True)

    def step():
        (torch.tensor(data).sum() * weight).sum().backward()

    step()
    told = nbkit.opdoctor().run(step).meta["step"]
    assert told["held_bytes"] == 2 * weight.nbytes  # and its gradient
    assert 400_000 <= told["peak_bytes"] < 402_000


class Waiting(nn.Module):
    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.weight = seconds, nn.Parameter(torch.ones(1))

    def forward(self, x):
        sleep(self.seconds)
        return x * self.weight


def test_modules_of_two_models_at_one_path_are_two():
    first, second = nn.Sequential(Waiting(0.03), Waiting(0.045)), nn.Sequential(Waiting(0.03))
    trace = nbkit.opdoctor(repeats=2).run(lambda: second(first(torch.ones(4))).sum().backward())
    _, name, time_us = trace.meta["step"]["slowest_modules"][0]
    assert name == "1" and time_us < 57_000


def test_whose_memory_it_is_nobody_says(tmp_path):
    page = nbkit.opreport(nbkit.opdoctor().run(training()), path=tmp_path / "report.html").read_text()
    assert "on cpu after" in page and "outside any op" not in page
