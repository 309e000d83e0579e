"""Tests opcheck(stop=True): the step ends at the op that went wrong, the trace so far is kept."""

import pytest
import torch
from torch import nn

import nbkit


def test_the_step_stops_right_after_the_op():
    after = []
    with pytest.raises(nbkit.NonFiniteError, match=r"^aten.log.default: 2 of 2"), nbkit.opcheck(stop=True) as trace:
        torch.zeros(2).log()
        after.append(1)
    assert after == [] and not trace.complete
    assert trace.findings["op"].tolist() == ["aten.log.default"]
    assert trace.meta["error"]["op_id"] == trace.findings["op_id"][0]


def test_a_backward_pass_stops_too():
    x = torch.zeros(3, requires_grad=True)
    y = x.sqrt().sum()
    with pytest.raises(nbkit.NonFiniteError, match="div"), nbkit.opcheck(stop=True) as trace:
        y.backward()
    assert x.grad is None
    assert trace.findings["phase"].tolist() == ["backward"]


def test_a_result_that_underflows_stops_too():
    x = torch.full((4,), 1e-30)
    with pytest.raises(nbkit.NonFiniteError, match=r"^aten.mul.Tensor: "), nbkit.opcheck(stop=True) as trace:
        x * x
    assert trace.findings[["op", "rule"]].to_numpy().tolist() == [["aten.mul.Tensor", "underflow"]]


def test_the_error_names_the_step():
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    with pytest.raises(nbkit.NonFiniteError) as raised, nbkit.opcheck(stop=True):
        for _ in range(2):
            weight.log().sum().backward()
            optimizer.step()
    assert raised.value.__notes__[0].startswith("forward, outside modules, step 1, ")


def test_a_healthy_step_runs_to_its_end():
    net = nn.Linear(3, 3)
    with nbkit.opcheck(stop=True) as trace:
        net(torch.ones(2, 3)).sum().backward()
    assert trace.complete and trace.findings.empty
    assert net.weight.grad is not None
