"""Tests the modules frame: sizes of each module, shared and lazy tensors included."""

import torch
from torch import nn

import nbkit
from tests.capture.models import record


class Shared(nn.Module):
    """Holds one layer twice, and one that has not run yet."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.part = nn.Sequential(self.first, nn.BatchNorm1d(2, affine=False), nn.Linear(2, 1, bias=False))
        self.part[2].requires_grad_(False)
        self.later = nn.LazyLinear(3)

    def forward(self, x):
        return self.part(self.first(x))


def test_shared_parameters_count_once_in_each_module_and_lazy_ones_not_at_all():
    model = Shared()
    with nbkit.optrace() as trace:
        model(torch.ones(3, 2))
    assert trace.modules[["module", "params", "trainable_params", "param_bytes", "buffer_bytes"]].values.tolist() == [
        ["", 8, 6, 32, 24],
        ["first", 6, 6, 24, 0],
        ["part", 8, 6, 32, 24],
        ["part.1", 0, 0, 0, 24],
        ["part.2", 2, 0, 8, 0],
        ["later", 0, 0, 0, 0],
    ]


def test_a_model_that_changed_between_recordings_has_its_new_sizes():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    x = torch.ones(1, 2)
    first = record(lambda: model(x)).modules
    model[0] = nn.Linear(2, 5)
    model.append(nn.Linear(5, 1))
    second = record(lambda: model(x)).modules
    assert first["params"].tolist() == [9, 9, 0]
    assert second["module"].tolist() == ["", "0", "1", "2"]
    assert second["params"].tolist() == [21, 15, 0, 6]


def test_sizes_of_a_model_that_is_gone_are_those_it_ran_with():
    held = [nn.Sequential(nn.Linear(2, 3))]
    x = torch.ones(1, 2)
    record(lambda: held[0](x))
    modules = record(lambda: held.pop()(x)).modules
    assert modules["params"].tolist() == [9, 9]
    assert not held
