"""What is measured of each layer, and how often: its numbers are those of torch."""

import pytest
import torch
from torch import nn

from nbkit.capture.watch import layers
from nbkit.capture.watch.layers import LayerWatch, layers_of
from nbkit.capture.watch.watch import StepWatch


@pytest.fixture
def watch():
    watch = StepWatch()
    watch.install()
    yield watch
    watch.remove()


def trained(watch, steps, rows):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watch.layers = LayerWatch(rows.append, lambda: [model, *model.modules(), optimizer])
    before, out = [], torch.zeros(())
    for number in range(steps):
        before = [one.detach().clone() for one in model.parameters()]
        watch.begin(number)
        optimizer.zero_grad()
        out = model(torch.full((3, 4), float(number + 1)))
        out.square().mean().backward()
        optimizer.step()
        watch.end(None)
    return model, before, out


def test_norms_and_ranges_of_each_layer_are_those_of_torch(watch):
    rows: list = []
    model, before, out = trained(watch, 2, rows)
    last = {row["name"]: row["value"] for row in rows if row["step"] == 1}
    assert {name.partition("/")[2] for name in last} == {"0", "2"}

    def norm(tensors):
        return pytest.approx(float(torch.cat([one.flatten() for one in tensors]).norm()))

    held = [*model[2].parameters()]
    assert last["gradient_norm/2"] == norm([one.grad for one in held])
    assert last["weight_norm/2"] == norm(before[2:])
    assert last["update_norm/2"] == norm([one.detach() - old for one, old in zip(held, before[2:], strict=True)])
    bounds = last["activation_min/2"], last["activation_max/2"]
    assert bounds == pytest.approx((float(out.detach().min()), float(out.detach().max())))
    assert not any(module._forward_hooks for module in model.modules())


def test_ever_fewer_steps_are_measured(watch, monkeypatch):
    monkeypatch.setattr(layers, "MOST_STEPS", 20)
    monkeypatch.setattr(layers, "TIME_SHARE", 1.0)
    rows: list = []
    trained(watch, 100, rows)
    steps = sorted({row["step"] for row in rows})
    assert steps[:20] == list(range(20)) and steps[-2:] == [91, 96] and len(steps) < 50


def test_a_step_under_it_computes_the_same_bits(watch):
    model, *_ = trained(watch, 3, [])
    bare = StepWatch()
    other, *_ = trained(bare, 0, [])
    optimizer = torch.optim.SGD(other.parameters(), 0.1)
    for number in range(3):
        optimizer.zero_grad()
        other(torch.full((3, 4), float(number + 1))).square().mean().backward()
        optimizer.step()
    assert all(map(torch.equal, model.parameters(), other.parameters()))


def test_a_deep_model_is_measured_by_what_holds_its_layers():
    blocks = nn.ModuleList(nn.Sequential(*(nn.Linear(1, 1) for _ in range(10))) for _ in range(10))
    found = layers_of([nn.ModuleDict({"blocks": blocks}), blocks, *blocks])
    assert [layer.name for layer in found] == [f"blocks.{number}" for number in range(10)]
    assert {len(layer.parameters) for layer in found} == {20}


def test_layers_of_two_models_have_their_names():
    class Judge(nn.Linear):
        pass

    assert [layer.name for layer in layers_of([nn.Linear(1, 1), Judge(1, 1)])] == ["Linear", "Judge"]
    assert layers_of([]) == []
