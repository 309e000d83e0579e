"""What models, scalers and schedulers hold is after opcost what it was, and numbers that a step reads end it only where
it branches on them."""

import copy
import gc
import math
import pickle
import warnings
import weakref

import pytest
import torch
from torch import nn

import nbkit
from tests.support.garbage import pass_over


class Caching(nn.Module):
    """Keeps tensors of its last call, as models with position tables and key-value caches do."""

    def __init__(self):
        super().__init__()
        self.linear, self.seen, self.table, self.calls = nn.Linear(4, 4), [], None, 0
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        if self.table is None or len(self.table) < len(x):
            self.table = torch.arange(len(x)).float()
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        self.seen.append(x * 2)
        self.calls += 1
        return self.linear(x + self.mean) * self.table[: len(x), None]


def test_what_a_model_keeps_of_its_calls():
    torch.manual_seed(0)
    model, x = Caching(), torch.randn(3, 4)
    mean = model.mean
    trace = nbkit.opcost().run(lambda: model(x).sum().backward())
    assert len(trace.costs) and model.mean is mean
    assert (model.seen, model.table, model.calls, model.linear.weight.grad) == ([], None, 0, None)
    again = nbkit.opcost().run(lambda: model(x).sum().backward())
    assert again.costs["op"].tolist() == trace.costs["op"].tolist()
    model(x).sum().backward()  # runs with real values
    assert type(model.seen[0]) is torch.Tensor and type(model.linear.weight.grad) is torch.Tensor


@pytest.mark.parametrize("has_run", [False, True], ids=["first step", "later step"])
def test_a_gradient_scaler_and_a_scheduler_step(has_run):
    model, x = nn.Linear(8, 8), torch.randn(4, 8)
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cpu")
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def step():
        optimizer.zero_grad()
        scaler.scale(model(x).square().mean()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()

    if has_run:
        step()
    before = scaler.state_dict(), scheduler.state_dict(), len(optimizer.state)
    trace = nbkit.opcost().run(step)
    assert (scaler.state_dict(), scheduler.state_dict(), len(optimizer.state)) == before
    assert trace.storages.groupby("kind")["size_bytes"].sum()["optimizer state"] == 2 * 4 * 72 + 2 * 4
    assert "aten._amp_foreach_non_finite_check_and_unscale_.default" in trace.costs["op"].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step()
    assert scaler.get_scale() == 65536


def test_a_step_may_print_its_loss_and_add_it_up():
    model, x, lines, sums = nn.Linear(8, 8), torch.randn(4, 8), [], [0.0]

    def step():
        loss = model(x).square().mean()
        if not math.isfinite(loss.item()):
            raise AssertionError("a loss that nobody knows is no NaN")
        sums[0] += loss.item() / 4
        lines.append(f"{loss.item():.3f} {loss:.2e} {sums[0]:.4f} {round(loss.item(), 2)} {-loss.item()}")

    nbkit.opcost().run(step)
    assert lines == ["unknown unknown unknown unknown unknown"]
    assert "item" not in vars(torch.Tensor)
    step()
    assert "unknown" in lines[1].split()[2] and float(lines[1].split()[0]) > 0


def test_a_number_that_nobody_knows_is_printed_as_such_and_copied_as_a_float():
    x, lines, copies = torch.ones(3), [], []

    def step():
        loss = x.sum().item()
        lines.extend([str(loss), repr(loss), f"{[loss]}", f"{x * 2}"])
        copies.append((copy.copy(loss), pickle.loads(pickle.dumps({"loss": loss}))["loss"]))

    nbkit.opcost().run(step)
    assert lines[:3] == ["unknown", "unknown", "[unknown]"]
    assert lines[3].startswith("FakeTensor(") and "size=(3,)" in lines[3]
    assert copies == [(1.0, 1.0)] and {type(each) for each in copies[0]} == {float}


def test_a_known_number_that_a_loss_is_added_to_is_not_known_any_more():
    model, x, lines = nn.Linear(4, 4), torch.randn(3, 4), []

    def step():
        total = torch.zeros(())
        lines.append(f"{total.item()} {total.add_(2).item()} {total.add_(model(x).mean()).item()}")

    nbkit.opcost().run(step)
    assert lines == ["0.0 2.0 unknown"]


BRANCHES = {
    "greater": lambda value: value > 3,
    "equal": lambda value: value == 3,
    "truth": lambda value: 1 if value else 2,
    "whole": lambda value: range(int(value)),
    "of a sum": lambda value: max(0.0, 2 * value + 1),
}


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_branch_on_a_number_ends_with_one_sentence(branch):
    x = torch.randn(4)
    recorder = nbkit.opcost(values="bound")
    with pytest.raises(nbkit.CostError, match=r"aten._local_scalar_dense needs values.*test_left_alone.py"), recorder:
        BRANCHES[branch](x.sum().item())
    assert recorder.trace.costs["op"].tolist() == ["aten.sum.default", "aten._local_scalar_dense.default"]


def test_a_number_that_outlives_its_step_says_where_it_was_read():
    read, anchors = [], []

    def step():
        model = nn.Linear(8, 8)
        anchors.append(weakref.ref(model))
        read.append(model(torch.ones(2, 8)).sum().item() + 1)

    nbkit.opcost().run(step)
    gc.collect()
    assert anchors[0]() is None
    with pytest.raises(nbkit.CostError, match=r"aten._local_scalar_dense needs values.*test_left_alone.py"):
        min(read[0], 3.0)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_the_garbage_collector_has_what_it_had(is_frozen):
    model = nn.Linear(8, 8)
    gc.unfreeze()
    if is_frozen:
        gc.freeze()
    try:
        nbkit.opcost().run(lambda: model(torch.ones(2, 8)))
        assert bool(gc.get_freeze_count()) is is_frozen and gc.isenabled()
    finally:
        gc.unfreeze()
        pass_over()


def test_an_error_of_the_step_is_its_own_and_torch_logs_nothing_beside_it(capfd):
    model, x = nn.Linear(8, 8), torch.randn(4, 3)
    depth = len(torch.utils._python_dispatch._get_current_dispatch_mode_stack())
    with pytest.raises(RuntimeError, match="reduction dim|shapes cannot be multiplied"):
        nbkit.opcost().run(lambda: model(x))
    assert capfd.readouterr().err == ""
    assert len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()) == depth
    assert model(torch.randn(4, 8)).shape == (4, 8)


def test_an_optimizer_steps_on_gradients_from_before():
    parameter = nn.Parameter(torch.ones(8))
    parameter.grad = before = torch.ones(8)
    table = nbkit.opcost().run(torch.optim.SGD([parameter], lr=0.1).step).costs
    assert table["elementwise_flops"].sum() == 8
    assert parameter.grad is before and torch.equal(parameter, torch.ones(8))


def test_a_model_of_an_earlier_step_may_be_alive():
    with nbkit.opcost():
        model = nn.Linear(4, 8)
        model(torch.ones(2, 4)).sum().backward()
    assert nbkit.opcost().run(lambda: torch.ones(2) + 1).costs["op"].tolist()[-1] == "aten.add.Tensor"
    assert model.weight.grad.shape == (8, 4)


def test_the_forward_of_its_own_that_a_checkpointed_module_was_given_is_its_own_again():
    model, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.randn(4, 8)
    linear = model[0]
    linear.forward = forward = lambda x: nn.functional.linear(x, linear.weight, linear.bias).tanh()
    expected = model(x)
    nbkit.what_if(lambda: model(x).sum().backward(), checkpoint=["0", "1"])
    assert vars(linear)["forward"] is forward and "forward" not in vars(model[1])
    assert torch.equal(model(x), expected)


def test_gradients_that_are_there_are_read_as_shapes_and_stay():
    model, x = nn.Linear(8, 8), torch.randn(4, 8)
    model(x).sum().backward()
    before = [parameter.grad.clone() for parameter in model.parameters()]
    trace = nbkit.opcost().run(lambda: [parameter.grad.mul_(2) for parameter in model.parameters()])
    assert trace.costs["elementwise_flops"].tolist() == [64, 8]
    assert all(map(torch.equal, before, [parameter.grad for parameter in model.parameters()]))


def test_a_model_with_a_number_that_is_known_is_cast_inside_the_step():
    """Module.to() swaps parameters, which torch refuses while anything refers to them weakly."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return x * self.scale

    lines = []

    def step():
        model = Scaled()
        lines.append(f"{model.scale.item()} {model.to(torch.bfloat16).scale.dtype}")
        model(torch.ones(2, dtype=torch.bfloat16)).sum().backward()

    nbkit.opcost().run(step)
    assert lines == ["0.0 torch.bfloat16"]
