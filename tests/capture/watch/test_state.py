"""The state that a step begins with: put back, the same steps follow."""

import gc
import random

import numpy as np
import pytest
import torch
from torch import nn

from nbkit.capture.watch.state import (
    PYTHON,
    NumpyState,
    State,
    TooLargeError,
    holders,
    is_frozen,
    random_state,
    set_random_state,
)
from tests.support.garbage import pass_over


class Trainer:
    """Has all that a step may change: BatchNorm, Adam, a schedule, a scaler, random numbers and plain attributes."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120, growth_interval=2)
        self.seen, self.losses = 0, []

    def step(self):
        self.seen += 1
        x = torch.randn(6, 4) * random.random() * np.random.rand()
        loss = self.model(x).square().mean()
        self.optimizer.zero_grad(set_to_none=self.seen % 2 == 0)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        self.losses.append(loss.item())
        return loss.item(), self.scaler.get_scale(), self.optimizer.param_groups[0]["lr"], self.seen, len(self.losses)


def state_of(trainer, most_bytes=1 << 20):
    held = [trainer, trainer.model, *trainer.model, trainer.optimizer, trainer.schedule, trainer.scaler]
    return State(held, [], most_bytes)


@pytest.mark.parametrize("before", [0, 3])
def test_the_same_steps_follow_when_it_is_put_back(before):
    trainer = Trainer()
    for _ in range(before):
        trainer.step()
    state = state_of(trainer)
    steps = [trainer.step() for _ in range(4)]
    weights = [value.clone() for value in trainer.model.state_dict().values()]
    for _ in range(2):  # as often as wanted
        state.restore()
        assert [trainer.step() for _ in range(4)] == steps
        for value, expected in zip(trainer.model.state_dict().values(), weights, strict=True):
            assert torch.equal(value, expected)


def test_what_was_frozen_or_no_longer_is_that_again():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1).requires_grad_(False))
    model(torch.ones(2, 4)).sum().backward()
    gradient = model[0].weight.grad
    state = State([model, *model], [], 1 << 20)
    model[0].requires_grad_(False).zero_grad()
    model[1].requires_grad_(True)
    model(torch.ones(2, 4)).sum().backward()
    state.restore()
    assert [parameter.requires_grad for parameter in model.parameters()] == [True, True, False, False]
    assert model[0].weight.grad is gradient
    model(torch.ones(2, 4)).sum().backward()
    torch.testing.assert_close(gradient, 2 * 2 * model[1].weight.detach().T.expand(4, 4))  # twice, of two rows of ones


def test_tensors_and_gradients_stay_the_same_objects_and_memory():
    trainer = Trainer()
    trainer.step()
    parameters = list(trainer.model.parameters())
    before = [(id(one), one.data_ptr(), one.grad) for one in parameters]
    state = state_of(trainer)
    trainer.step()
    trainer.step()
    state.restore()
    assert [(id(one), one.data_ptr(), one.grad) for one in parameters] == before


def test_a_model_that_was_converted_is_what_it_was():
    model = nn.Linear(3, 3)
    state, weight = State([model], [], 1 << 20), model.weight.detach().clone()
    model.to(torch.float64).requires_grad_(False)
    model.train(False)
    state.restore()
    assert model.training
    assert torch.equal(model.weight, weight) and model.weight.dtype == torch.float32


def test_trained_tensors_among_names_are_kept_and_data_is_not():
    trained, data = torch.ones(3, requires_grad=True), torch.ones(3)
    listed = [torch.ones(2, requires_grad=True)]
    state = State([], [{"trained": trained, "data": data, "listed": listed, "text": "data"}], 1 << 20)
    with torch.no_grad():
        for tensor in (trained, data, listed[0]):
            tensor.add_(1)
    state.restore()
    assert (trained.tolist(), data.tolist(), listed[0].tolist()) == ([1, 1, 1], [2, 2, 2], [1, 1])


def test_its_bytes_are_those_of_tensors_and_their_gradients_each_once():
    model = nn.Linear(10, 10)
    model.tied = model.weight
    assert State([model], [], 440).bytes == 440
    model(torch.ones(1, 10)).sum().backward()
    assert State([model], [], 880).bytes == 880
    with pytest.raises(TooLargeError):
        State([model], [], 879)


def test_the_change_since_is_that_of_the_values():
    model = nn.Linear(3, 1)
    state = State([model], [], 1 << 20)
    before = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.mul_(1.5)
    change, norm = state.change_of(model.weight)
    assert change == pytest.approx(0.25 * float(before.norm()) ** 2)
    assert norm == pytest.approx(float(before.norm()) ** 2)


def test_tensors_that_a_step_has_swapped_for_those_of_another_device_come_back():
    model = nn.Linear(3, 1)
    model.table, weight, before = torch.ones(2), model.weight, model.weight.detach().clone()
    table, state = model.table, State([model], [], 1 << 20)
    for tensor in (weight, table):
        other = torch.zeros(2, device="meta")
        torch.utils.swap_tensors(tensor, nn.Parameter(other) if tensor is weight else other)
    assert weight.is_meta and table.is_meta
    state.restore()
    assert model.weight is weight and torch.equal(weight, before)
    assert isinstance(weight, nn.Parameter) and weight.requires_grad
    assert model.table is table and table.tolist() == [1, 1] and not isinstance(table, nn.Parameter)


def test_what_is_not_comparable_has_not_changed():
    model = nn.BatchNorm1d(3)
    state, other = State([model], [], 1 << 20), torch.ones(2)
    with torch.no_grad():
        model.num_batches_tracked += 1
        model.weight.data = torch.ones(4)
    assert [state.change_of(one) for one in (model.num_batches_tracked, model.weight)] == [(0.0, 0.0)] * 2
    assert state.change_of(other) == (0.0, pytest.approx(2.0))


def test_holders_are_found_wherever_they_are():
    trainer = Trainer()
    found = {id(one) for one in holders()}
    assert {id(one) for one in (trainer.model[0], trainer.optimizer, trainer.schedule, trainer.scaler)} <= found
    assert id(trainer) not in found


@pytest.mark.parametrize("freeze", [gc.unfreeze, gc.freeze])
def test_what_the_garbage_collector_does_not_tell_is_frozen(freeze):
    gc.unfreeze()
    freeze()
    try:
        assert is_frozen(gc.get_objects()) is bool(gc.get_freeze_count()) is (freeze is gc.freeze)
    finally:
        gc.unfreeze()
        pass_over()


DRAWS = {
    "nothing": lambda: None,
    "a uniform number": np.random.rand,
    "a normal number, whose twin waits or was waiting": np.random.randn,
    "three normal numbers": lambda: np.random.randn(3),
    "all numbers that there are": lambda: np.random.bytes(4 * 624),
    "a seed": lambda: np.random.seed(3),
}


def test_the_state_of_numpy_is_what_numpy_tells_whatever_was_drawn():
    np.random.seed(0)
    known, order = NumpyState(), random.Random(0)
    for name in order.choices([*DRAWS], k=300):
        DRAWS[name]()
        np.testing.assert_equal(known.read(), np.random.get_state(legacy=False), err_msg=name)


def test_the_state_of_numpy_is_copied_after_a_draw_only(monkeypatch):
    np.random.seed(0)
    known, copies, get_state = NumpyState(), [], np.random.get_state
    monkeypatch.setattr(np.random, "get_state", lambda **named: copies.append(named) or get_state(**named))
    known.read(), known.read()
    assert len(copies) == 1
    np.random.rand()
    known.read(), known.read()
    assert len(copies) == 2


@pytest.mark.parametrize("draws", [0, 1, 623, 624, 625])
def test_pythons_state_is_read_anew_after_a_draw_and_after_a_seed(draws):
    before = random.getstate()
    try:
        for seed in (1, 2):
            random.seed(seed)
            assert PYTHON.read() == random.getstate()
            for _ in range(draws):
                random.getrandbits(32)
            assert PYTHON.read() == random.getstate()
            random.gauss()  # makes a second number, which waits
            assert PYTHON.read() == random.getstate()
            random.gauss()
            assert PYTHON.read() == random.getstate()
    finally:
        random.setstate(before)


def test_a_generator_that_is_not_numpys_own_is_kept_and_put_back():
    before = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(0))
        kept, first = random_state(), np.random.rand()
        set_random_state(kept)
        assert np.random.rand() == first
    finally:
        np.random.set_bit_generator(before)


def test_the_casts_that_a_block_of_autocast_keeps_are_put_back_with_their_gradients():
    model, x = nn.Linear(4, 2), torch.randn(3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        first = model(x)
        with torch.no_grad():
            model.weight.add_(1)
        state = State([model], [], 1 << 20)
        torch.clear_autocast_cache()
        assert not torch.equal(model(x), first)
        for _ in range(2):
            state.restore()
            out = model(x)
            assert torch.equal(out, first)
        out.sum().backward()
        empty = State([nn.Linear(1, 1)], [], 1 << 20)
        empty.restore()
        assert not torch.equal(model(x), first)
    assert torch.equal(model.weight.grad, x.bfloat16().sum(0).float().expand(2, 4))


def test_what_autocast_keeps_is_read_without_a_trace():
    model, x = nn.Linear(4, 2), torch.randn(3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        State([model], [], 1 << 20)
        with torch.no_grad():
            model.weight.zero_()
        assert torch.equal(model(x), model.bias.bfloat16().expand(3, 2))
