"""The sums of gradients that autograd adds between its nodes are told from the ops of the nodes."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nbkit.capture.cost.engine_sums import EngineSums


class Noted(TorchDispatchMode):
    """Notes each op, and whether the engine ran it."""

    def __init__(self, sums):
        super().__init__()
        self.sums, self.ops = sums, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append((func._opname, self.sums.is_running()))
        return func(*args, **(kwargs or {}))


class Added(torch.autograd.Function):
    """Has a backward formula that adds by itself."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient + gradient


def noted(step):
    sums = EngineSums()
    with sums, Noted(sums) as mode:
        step()
    return [of_engine for name, of_engine in mode.ops if name == "add"]


def test_a_tensor_taken_three_times_has_two_sums():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    loss = (y * 2).sum() * (y * 3).sum() * (y * 4).sum()
    assert noted(loss.backward) == [True, True]


def test_what_a_formula_adds_is_the_node_s():
    x = torch.ones(3, requires_grad=True)
    y = Added.apply(x.exp())
    assert noted((y * y).sum().backward) == [True, False]


def test_a_pass_over_gradients_and_one_by_grad():
    x = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert noted(lambda: torch.autograd.grad((gradient * gradient).sum(), x)) == [True]


def test_it_ends_with_the_block_and_after_an_error():
    run = torch.autograd._engine_run_backward
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"), EngineSums():
        y.sum().backward()
    assert torch.autograd._engine_run_backward is run
    assert y.grad_fn is not None and not noted(lambda: (x * 2).sum().backward())


def test_no_node_is_watched_after_its_pass():
    loss, sums = torch.ones(3, requires_grad=True).exp().sum(), EngineSums()
    with sums:
        loss.backward(retain_graph=True)
    loss.backward()
    assert sums.passed is None
