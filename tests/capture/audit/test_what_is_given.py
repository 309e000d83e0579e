"""Tests which models and optimizers opaudit looks at, what it refuses, and how tied weights stand in its frame."""

import copy
import json

import pytest
import torch
from torch import nn

import nbkit
from tests.capture.audit.right.shared import Net, batch
from tests.capture.audit.test_wrong_cases import audited, only


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": 3}, "model must be a module, got int; give a torch.nn.Module, or several."),
        ({"optimizer": "Adam"}, "optimizer=str has no param_groups; give one of torch.optim."),
    ],
)
def test_bad_input_is_one_sentence(options, message):
    with pytest.raises(nbkit.OptionError) as caught:
        nbkit.opaudit(**options)
    assert str(caught.value) == message


def test_only_the_given_model_is_looked_at():
    model, other = Net(), Net()
    trace = audited(lambda _: (model(batch()), other(batch())), model=model)
    assert len(trace.parameters) == 6
    assert trace.parameters["in_optimizer"].isna().all()
    trace = audited(lambda _: model(batch()), model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
    assert (trace.parameters["in_optimizer"] == 1).all()


def test_tied_weights_have_two_rows_and_one_finding():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 1))
    model[2].weight = model[0].weight
    optimizer = torch.optim.SGD(model[3].parameters(), 0.1)

    def step(_):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()

    trace = audited(step)
    tied = trace.parameters[["name", "tied_with"]].dropna().to_numpy().tolist()
    assert tied == [["2.weight", "0.weight"]]
    assert json.loads(only(trace).evidence)["parameters"] == ["0.weight", "0.bias", "2.bias"]


def test_an_average_that_is_given_too_has_a_name_of_its_own_and_no_more_of_it_moves_than_there_is():
    model = nn.Linear(8, 1)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbkit.opaudit(model=[model, average]) as trace:
        for _ in range(2):
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                for kept, now in zip(average.parameters(), model.parameters(), strict=True):
                    kept.lerp_(now, 0.1)
    assert "2 parameters of Linear: all got a gradient and moved; 2 parameters of Linear#2: all are" in trace.brief()
