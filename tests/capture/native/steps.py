"""Steps that take the recorder through every kind of op, and one run of a step under each of the two recorders."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import nbkit
from tests.capture.models import mlp

TIMES = ["start_us", "total_time_us", "self_time_us"]


def traces(make, monkeypatch):
    """The traces of the Python and of the native recorder, each of a step made anew from the same seed."""
    found = []
    for recorder in ("python", "native"):
        monkeypatch.setenv("NBKIT_RECORDER", recorder)
        torch.manual_seed(0)
        step = make()
        with nbkit.optrace() as trace:
            step()
        assert trace.meta["recorder"] == {"python": "python", "native": "observer"}[recorder]
        found.append(trace)
    return found


def views():
    y = (torch.ones(4, 6, requires_grad=True) * 1).clone()
    y[1] = 0
    y[:, 2].mul_(3)
    first, second = torch.split(y, 2)
    loss = y.view(24)[::2].sum() + torch.stack([first, second]).unbind(0)[0].sum()
    loss.backward()


def out_arguments():
    x, out = torch.randn(4, 6), torch.empty(4, 6)
    torch.add(x, 1, out=out)
    torch.max(out, 1, out=(torch.empty(4), torch.empty(4, dtype=torch.int64)))
    x[torch.tensor([0, 1]), None]
    torch.topk(torch.linalg.qr(x)[0], 2)


def changed_in_place():
    x = torch.randn(4, 6)
    x.t_()
    x.resize_(3, 8)
    x.data.add_(1)
    x.data = torch.ones(5, 5)
    x.set_(torch.zeros(2, 2)).unsqueeze_(0).add_(1)


def foreach():
    parameters = [torch.randn(3, 3, requires_grad=True) for _ in range(4)]
    optimizer = torch.optim.AdamW(parameters, foreach=True)
    sum(parameter.sum() for parameter in parameters).backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
    optimizer.step()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3 * ctx.saved_tensors[0] ** 2


def custom_function():
    x = torch.randn(4, requires_grad=True)
    y = Cube.apply(x)
    y.register_hook(lambda gradient: gradient * 2)
    y.sum().backward()


def checkpointed():
    checkpoint(mlp(), torch.randn(5, 6, requires_grad=True), use_reentrant=True).sum().backward()


def autocast():
    with torch.autocast("cpu", torch.bfloat16):
        F.layer_norm(nn.Linear(6, 6)(torch.randn(2, 6)), (6,)).sum().backward()


def encoder():
    nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(torch.randn(2, 5, 8)).sum().backward()


def functorch():
    w = torch.randn(3, 3)
    torch.func.vmap(lambda x: (w @ x).sin())(torch.randn(4, 3))
    torch.func.grad(lambda x: (w @ x).sin().sum())(torch.randn(3))
    torch.func.jacrev(lambda x: w @ x)(torch.randn(3))


def odd_layouts():
    sparse = torch.eye(3).to_sparse()
    torch.sparse.mm(sparse * 2, torch.ones(3, 2))
    nn.Embedding(5, 3, sparse=True)(torch.tensor([1, 2])).sum().backward()
    torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8).dequantize()
    (torch.tensor([1 + 1j, 2]).conj() * 2).real.neg()
    torch.ones(3, device="meta") + torch.ones(3, dtype=torch.bfloat16, device="meta")


class Doubling(TorchDispatchMode):
    """A user's mode that runs an op of its own after each."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        torch.ones(1)
        return out


def without_users_mode():
    (torch.ones(2, requires_grad=True) * 2).sum().backward()


def users_mode():
    with Doubling():
        without_users_mode()


def nested_recording():
    with nbkit.optrace():
        torch.ones(2).add_(1)
    torch.zeros(2)


STEPS = [
    *(views, out_arguments, changed_in_place, foreach, custom_function, checkpointed, autocast, encoder),
    *(functorch, odd_layouts, users_mode, nested_recording),
]
each_step = pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
