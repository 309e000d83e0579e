"""Parameters whose place other tensors take for a call (functional_call), as the recording first meets them."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

X = torch.linspace(-1, 1, 32).view(4, 8)


def of_each_sample(model):
    """Sets the mean of the gradients of each sample: the weights that run are wrapped by grad and vmap."""

    def of_one(weights, x):
        return torch.func.functional_call(model, weights, (x,)).square().mean()

    weights = {name: one.detach() for name, one in model.named_parameters()}
    each = torch.func.vmap(torch.func.grad(of_one), (None, 0))(weights, X)
    for name, one in model.named_parameters():
        one.grad = each[name].mean(0)


def with_others(model):
    """Runs the model with plain tensors twice as large."""
    model.zero_grad()
    weights = {name: 2 * one for name, one in model.named_parameters()}
    F.mse_loss(torch.func.functional_call(model, weights, (X,)), X[:, :2]).backward()


@pytest.mark.parametrize("gradients", [of_each_sample, with_others])
@pytest.mark.parametrize("rate", [0.1, 0.0])
def test_whether_parameters_moved_is_that_of_the_parameters_themselves(gradients, rate):
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), rate)
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    with nbkit.opaudit() as trace:
        for _ in range(2):
            gradients(model)
            optimizer.step()
    rows = trace.parameters.set_index("name")
    for name, one in model.named_parameters():
        assert rows.loc[name, "changed_fraction"] == (one != before[name]).float().mean()
        change = (one.detach() - before[name]).norm() / before[name].norm()
        assert rows.loc[name, "update_fraction"] == pytest.approx(float(change), rel=1e-5)
    assert (rows["gradient"] == "finite").all()
