"""The row of a watched step: its numbers are those of torch."""

import math
import mmap
import os
import time
from pathlib import Path

import psutil
import pytest
import torch
from torch import nn

from nbkit.capture.watch.state import State
from nbkit.capture.watch.watch import ProcessMemory, StepWatch, norms_of
from tests.support.simulated import simulated_device


@pytest.fixture
def watch():
    watch = StepWatch()
    watch.install()
    yield watch
    watch.remove()


def model_and_optimizer():
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def norm_of(model):
    return float(torch.cat([one.grad.flatten() for one in model.parameters()]).norm())


def test_loss_gradient_norm_update_and_rate(watch):
    model, optimizer = model_and_optimizer()
    state = State([model], [], 1 << 20)
    before = torch.cat([one.detach().flatten() for one in model.parameters()])
    watch.begin(7)
    loss = model(torch.ones(3, 4)).square().mean()
    loss.backward()
    optimizer.step()
    row = watch.end(None)
    assert (row["step"], row["optimizer_steps"], row["skipped_steps"], row["learning_rate"]) == (7, 1, 0, 0.1)
    assert row["loss"] == pytest.approx(loss.item())
    assert row["gradient_norm"] == pytest.approx(norm_of(model))
    assert row["error"] is None and row["wall_us"] > 0 and row["held_bytes"] > 2**20
    after = torch.cat([one.detach().flatten() for one in model.parameters()])
    assert watch.update_fraction(state) == pytest.approx(float((after - before).norm() / before.norm()))


def test_what_the_process_uses_is_what_the_system_says(watch):
    begun = time.process_time()
    watch.begin(0)
    while time.process_time() < begun + 0.02:
        pass
    row = watch.end(None)
    assert row["process_bytes"] == row["held_bytes"] == pytest.approx(psutil.Process().memory_info().rss, abs=1 << 22)
    assert 10_000 < row["cpu_us"] <= 1e6 * (time.process_time() - begun)
    assert row["reserved_bytes"] is None and row["device_fraction"] is None


def test_a_device_in_use_tells_what_it_holds_and_how_busy_it_is(watch, monkeypatch):
    """Stands in for CUDA by what torch.cuda answers."""
    answers = {"is_initialized": True, "memory_allocated": 100, "memory_reserved": 400, "utilization": 75}
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, lambda answer=answer: answer)
    watch.begin(0)
    row = watch.end(None)
    assert (row["held_bytes"], row["reserved_bytes"], row["device_fraction"]) == (100, 400, 0.75)
    assert row["process_bytes"] > 1 << 20
    asked = []
    monkeypatch.setattr(torch.cuda, "utilization", lambda: asked.append(1) or 1 / 0)
    for _ in range(2):  # asked once: it will not tell the next time either
        watch.begin(1)
        assert watch.end(None)["device_fraction"] is None
    assert len(asked) == 1


def test_the_norm_is_that_of_all_gradients_small_and_large_of_every_dtype(watch):
    torch.manual_seed(0)
    half = nn.Linear(3, 5, dtype=torch.float64)
    model = nn.Sequential(nn.Linear(4, 90), nn.Linear(90, 80), nn.Linear(80, 1), half)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    model[1].bias.grad = None
    optimizer = torch.optim.SGD(model.parameters())
    watch.begin(0)
    optimizer.step()
    squares = [one.grad.double().square().sum() for one in model.parameters() if one.grad is not None]
    assert watch.end(None)["gradient_norm"] == pytest.approx(float(sum(squares)) ** 0.5, rel=1e-6)


def test_on_a_device_the_norms_are_one_of_each_dtype():
    simulated_device()
    single, half = torch.tensor([3.0, 0.0]), torch.tensor([2.0], dtype=torch.float64)
    norms = norms_of([single.to("sim"), half.to("sim"), torch.full((2, 2), 2.0).to("sim")])
    assert sorted((str(norm.dtype), float(norm)) for norm in norms) == [("torch.float32", 5.0), ("torch.float64", 2.0)]


def assert_is_resident(memory: ProcessMemory) -> None:
    """Fails unless memory tells what the system's other file tells, whatever the process has freed in between."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    assert abs(memory.held_bytes() - 1024 * int(line.split()[1])) < 2**24


@pytest.mark.skipif(not Path(ProcessMemory.PATH).exists(), reason="this system does not tell what a process holds")
def test_a_process_tells_its_own_memory():
    memory = ProcessMemory()
    held = mmap.mmap(-1, 2**26)
    assert_is_resident(memory)
    held.write(bytes(2**26))
    assert_is_resident(memory)
    memory.process = -1  # as in a fork, which has the file of the process before
    assert_is_resident(memory)
    file = memory.file
    memory.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)
    memory.close()


def test_a_system_that_does_not_tell_is_null(monkeypatch):
    monkeypatch.setattr(ProcessMemory, "PATH", "/proc/no/such/file")
    assert ProcessMemory().held_bytes() is None


def test_losses_of_a_step_are_added_and_those_of_a_scaler_are_unscaled(watch):
    model, optimizer = model_and_optimizer()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    watch.begin(0)
    first, second = model(torch.ones(1, 4)).square().mean(), model(torch.ones(1, 4)).abs().mean()
    scaler.scale(first).backward()
    torch.autograd.backward([second])
    scaler.step(optimizer)
    assert watch.end(None)["loss"] == pytest.approx(first.item() + second.item())


def test_a_step_that_a_scaler_skips_is_counted(watch):
    model, optimizer = model_and_optimizer()
    scaler = torch.amp.GradScaler("cpu")
    watch.begin(0)
    scaler.scale(model(torch.full((1, 4), math.inf)).sum()).backward()
    scaler.step(optimizer)
    row = watch.end(ValueError("odd"))
    assert (row["optimizer_steps"], row["skipped_steps"], row["gradient_norm"]) == (0, 1, None)
    assert row["error"] == "ValueError"


def test_a_step_that_a_fused_optimizer_skips_by_itself_is_counted(watch):
    model = nn.Linear(4, 2)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1, fused=True), torch.amp.GradScaler("cpu")
    for number, (filled, counted) in enumerate([(math.inf, (0, 1)), (1.0, (1, 0))]):
        watch.begin(number)
        optimizer.zero_grad()
        scaler.scale(model(torch.full((1, 4), filled)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        row = watch.end(None)
        assert (row["optimizer_steps"], row["skipped_steps"]) == counted


def test_what_runs_between_steps_is_not_looked_at(watch):
    model, optimizer = model_and_optimizer()
    watch.begin(0)
    watch.end(None)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    watch.begin(1)
    row = watch.end(None)
    assert (row["loss"], row["gradient_norm"], row["optimizer_steps"]) == (None, None, 0)


def test_the_step_computes_the_same_bits_and_random_numbers():
    def weights(watched):
        model, optimizer = model_and_optimizer()
        watch = StepWatch()
        if watched:
            watch.install()
            watch.begin(0)
        nn.functional.dropout(model(torch.randn(3, 4)), 0.5).sum().backward()
        optimizer.step()
        if watched:
            watch.end(None)
            watch.remove()
        return [one.detach() for one in model.parameters()], torch.randn(3)

    (bare, draws), (watched, same) = weights(False), weights(True)
    assert all(map(torch.equal, bare, watched)) and torch.equal(draws, same)


def test_it_leaves_torch_as_it_was():
    before = torch.autograd.backward, torch.amp.GradScaler.scale, torch.amp.GradScaler.step
    watch = StepWatch()
    watch.install()
    assert torch.autograd.backward is not before[0]
    watch.memory.held_bytes()
    file = watch.memory.file
    watch.remove()
    assert (torch.autograd.backward, torch.amp.GradScaler.scale, torch.amp.GradScaler.step) == before
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)
