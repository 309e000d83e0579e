"""The rows of the data set that a step trained on, as a DataLoader drew them."""

import json

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import nbkit

ROWS = torch.arange(40.0).unsqueeze(1)


@pytest.mark.parametrize("workers", [0, 2])
def test_each_step_has_the_rows_of_its_batch(workers):
    weight = nn.Parameter(torch.zeros(1))
    optimizer, met = torch.optim.SGD([weight], 1e-6), []
    with nbkit.opmonitor() as trace:
        for (x,) in DataLoader(TensorDataset(ROWS), 8, shuffle=True, num_workers=workers):
            met.append([int(value) for value in x.flatten()])
            (x.mean() * weight).sum().backward()
            optimizer.step()
            list(DataLoader(TensorDataset(ROWS), 3))  # an evaluation
    assert [json.loads(text) for text in trace.steps["batch"]] == met and len(met) == 5


def test_a_spike_names_the_rows_of_its_batch():
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], 1e-9)
    data = torch.ones(40, 1)
    data[27] = 1e4
    with nbkit.opmonitor() as trace:
        for (x,) in DataLoader(TensorDataset(data), 4):
            optimizer.zero_grad()
            (x * weight).mean().backward()
            optimizer.step()
    (finding,) = trace.findings.itertuples()
    assert (finding.rule, finding.step) == ("loss_spike", 6)
    assert "The batch that a DataLoader gave last has the rows 24, 25, 26, 27 of its data set" in finding.message
    assert json.loads(finding.evidence)["batch"] == [24, 25, 26, 27]


def test_rows_of_a_stream_are_not_known():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(ROWS)

    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], 1e-6)
    with nbkit.opmonitor() as trace:
        for x in DataLoader(Stream(), 8):
            (x.mean() * weight).sum().backward()
            optimizer.step()
    assert len(trace.steps) == 5 and trace.steps["batch"].isna().all()
