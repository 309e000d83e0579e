"""Puts back all that a step changes: values, gradients, optimizer state, random numbers, other objects."""

import queue
import random

import numpy as np
import pytest
import torch
from torch import nn

from nbkit import OptionError
from nbkit.capture.operators.bisect.kept_state import KeptState
from tests.capture.models import bits


class Loader:
    """Counts its batches, and tells of it as torch's stateful data loaders do."""

    batches = 0

    def state_dict(self):
        return {"batches": self.batches}

    def load_state_dict(self, state):
        self.batches = state["batches"]


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(5, 3, 4)).square().sum().backward()
    optimizer.step()


def test_models_and_optimizers_are_as_they_were_to_the_bit():
    model = nn.Sequential(nn.Conv1d(3, 2, 1), nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(model.parameters())
    kept = KeptState([model, optimizer])
    fresh = bits([*model.state_dict().values(), torch.get_rng_state()])
    step(model, optimizer)
    first = bits([*model.state_dict().values(), *(p.grad for p in model.parameters())])
    kept.restore()
    assert bits([*model.state_dict().values(), torch.get_rng_state()]) == fresh
    assert not optimizer.state
    assert all(parameter.grad is None for parameter in model.parameters())
    step(model, optimizer)
    assert bits([*model.state_dict().values(), *(p.grad for p in model.parameters())]) == first


def test_tensors_generators_and_other_objects_are_put_back():
    tensor, loader = torch.zeros(3), Loader()
    kept = KeptState({"tensors": [tensor], "data": loader})
    drawn = [(random.random(), float(np.random.rand()), float(torch.rand(())))]
    tensor.add_(1)
    loader.batches = 4
    kept.restore()
    assert (tensor.tolist(), loader.batches) == ([0, 0, 0], 0)
    assert [(random.random(), float(np.random.rand()), float(torch.rand(())))] == drawn


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ([3], "state= holds a int, which has no state that could be put back; give modules"),
        (torch.eye(2).to_sparse(), "state= holds a sparse_coo tensor, which cannot be put back"),
    ],
)
def test_what_cannot_be_put_back_is_refused(state, message):
    with pytest.raises(OptionError, match=message):
        KeptState(state)


def test_a_step_that_reads_a_queue_is_refused_before_it_runs():
    items = queue.Queue()
    with pytest.raises(OptionError, match="^the step reads the queue `items`, which could not be put back: the next"):
        KeptState([], lambda: items.get())
    KeptState([], lambda: items.put(1))
