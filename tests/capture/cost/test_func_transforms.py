"""Transforms of torch.func, which allow no hooks of saved tensors, cost what they compute and hold."""

import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.func import functional_call, grad, hessian, jacrev, vjp, vmap

import nbkit
from nbkit.capture.cost.saved_tensors import NOT_TOLD
from nbkit.compat.torch_versions import innermost_saved_tensors_hooks

NET, X = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4)), torch.ones(16, 8)
WEIGHTS = {name: parameter.detach() for name, parameter in NET.named_parameters()}
with torch.autograd.graph.saved_tensors_hooks(len, len):
    is_told = innermost_saved_tensors_hooks() == (len, len)
pytestmark = pytest.mark.skipif(not is_told, reason="this torch does not say which hooks are set")


def loss(weights, x=X):
    return functional_call(NET, weights, (x,)).square().sum()


def by_vjp():
    return vjp(loss, WEIGHTS)[1](torch.ones(()))


FORWARD, BACKWARD = 2 * 16 * (8 * 32 + 32 * 4), 2 * 16 * (8 * 32 + 2 * 32 * 4)
STEPS = {
    "grad": (lambda: grad(loss)(WEIGHTS), FORWARD + BACKWARD),
    "vjp": (by_vjp, FORWARD + BACKWARD),
    "grad of each sample": (lambda: vmap(grad(loss), (None, 0))(WEIGHTS, X), FORWARD + BACKWARD),
    "jacrev": (lambda: jacrev(lambda weights: functional_call(NET, weights, (X,)).sum(0))(WEIGHTS), None),
    "hessian": (lambda: hessian(lambda x: NET(x).sum())(X[0]), None),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_it_computes_is_counted(name):
    step, flops = STEPS[name]
    trace = nbkit.opcost().run(step)
    assert trace.meta["notes"] == [NOT_TOLD]
    assert trace.costs["flops"].sum() == flops or (flops is None and trace.costs["flops"].sum() > FORWARD // 16)


@pytest.mark.parametrize("name", ["grad", "vjp"])
def test_the_peak_is_that_of_a_step_that_runs(name):
    step, _ = STEPS[name]
    runs = nbkit.optime(memory=True, warmup=1, repeats=1).run(step).memory["allocated_bytes"].max()
    before = X.nbytes + sum(weight.nbytes for weight in WEIGHTS.values())
    assert nbkit.opcost().run(step).memory["allocated_bytes"].max() == before + runs


def test_what_comes_after_a_transform_is_saved_as_before():
    def step():
        NET(X)
        grad(loss)(WEIGHTS)
        NET(X)

    alone = nbkit.opcost().run(lambda: NET(X)).saved["new_bytes"].sum()
    trace = nbkit.opcost().run(step)
    # The input is one tensor for both.
    assert trace.saved["new_bytes"].sum() == 2 * alone - X.nbytes > 0
    assert innermost_saved_tensors_hooks() is None and trace.meta["notes"] == [NOT_TOLD]


def test_hooks_of_the_step_itself_are_refused_as_without_opcost():
    def step():
        with save_on_cpu():
            grad(loss)(WEIGHTS)

    for run in (lambda: step(), lambda: nbkit.opcost().run(step)):
        with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
            run()
    assert innermost_saved_tensors_hooks() is None
