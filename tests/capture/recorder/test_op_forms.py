"""Tests that ops in every form (in-place writes, views, repeated inputs, odd results) are seen and take effect."""

import platform

import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.models import aten, bits, in_any_mode, record, recorded_ops, seen_ops


def test_in_place_names():
    """add_, __setitem__, F.relu(inplace=True) and out= are seen and take effect."""

    def step():
        x = torch.ones(3)
        x.add_(1)
        x[0] = -5
        F.relu(x, inplace=True)
        torch.neg(x, out=x)
        outs.append((x, x[1]))

    outs = []
    trace = record(step)
    assert outs[0][0].tolist() == [0, -2, -2]
    calls = trace.ops.loc[trace.ops["level"] == "api", "op"].tolist()
    expected = ["torch.Tensor.add_", "torch.Tensor.__setitem__", "torch.nn.functional.relu", "torch.neg"]
    assert calls == ["torch.ones", *expected, "torch.Tensor.__getitem__"]
    assert {"aten.add_.Tensor", "aten.relu_.default", "aten.neg.out"} <= set(recorded_ops(trace))


def test_row_counts():
    """add(x, x) has 2 input rows, stack([y, y, y], dim=1) 3 and 1 output each."""
    x, y = torch.ones(2), torch.ones(2, 2)
    trace = record(lambda: (torch.add(x, x), torch.stack([y, y, y], dim=1)))
    by_op = trace.tensors.groupby("op_id")["role"].value_counts()
    assert by_op.tolist() == [2, 1, 3, 1]


def test_results_that_are_no_tensors():
    """Storages, dtypes, shapes and numbers pass through."""
    x = torch.arange(4.0)
    outs = []
    step = lambda: outs.append((x.untyped_storage().nbytes(), x.dtype, x.shape, x.tolist(), x.sum().item(), x.stride()))  # noqa: E731
    trace = record(step)
    assert outs == [(16, torch.float32, torch.Size([4]), [0, 1, 2, 3], 6.0, (1,))]
    assert trace.complete
    assert trace.meta["skipped"] == {
        reason: count
        for reason, count in trace.meta["skipped"].items()
        if reason.startswith("API calls that ran no op")
    }


def chain(x):
    y = x.clone()
    y[0, 0, 0] = 1.0
    y.add_(1).mul_(2).sub_(0.5).div_(3).pow_(2).sqrt_()
    y.sum().backward()
    return y


def views(x):
    y = x.clone()
    y.view(-1).div_(2)
    y[:, 1:] = 3.0
    y[0].mul_(1.5)
    y.t_() if y.dim() == 2 else y.transpose_(0, 1)
    y.pow(2).sum().backward()
    return y


def test_a_chain_of_in_place_ops_computes_the_same_bits():
    """Values and gradients through in-place ops and views."""
    for function in (chain, views):
        results = []
        for run in (lambda step: step(), lambda step: record(step, values="stats")):
            x = torch.arange(1.0, 28.0).view(3, 3, 3).requires_grad_()
            results.append([])
            run(lambda x=x: results[-1].extend([function(x), x.grad]))
            results[-1][1] = x.grad
        assert bits(results[0]) == bits(results[1])


def test_fused_qkv_attention_forward_and_backward():
    """Defect B1: a chunk of three whose gradients come as a sequence."""
    qkv, out = nn.Linear(8, 24), nn.Linear(8, 8)

    def step():
        q, k, v = qkv(torch.ones(2, 5, 8)).view(2, 5, 2, 12).transpose(1, 2).chunk(3, dim=-1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 5, 8)
        out(y).square().mean().backward()

    seen = seen_ops(step)
    gradients = bits([qkv.weight.grad, out.weight.grad])
    qkv.zero_grad(), out.zero_grad()
    trace = record(step)
    assert bits([qkv.weight.grad, out.weight.grad]) == gradients
    assert in_any_mode(recorded_ops(trace)) == in_any_mode(seen)
    assert aten(trace)[aten(trace)["phase"] == "backward"]["forward_op_id"].notna().sum() > 10


def test_lenet_step_with_random_ops_and_half():
    """LeNet, SGD, cross entropy, bernoulli, rand_like and a float16 full in one step."""
    features = (nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5))
    net = nn.Sequential(*features, nn.Flatten(), nn.Linear(1600, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step():
        x = torch.rand_like(torch.empty(2, 1, 28, 28)).bernoulli()
        F.cross_entropy(net(x), torch.tensor([1, 2])).backward()
        optimizer.step()
        torch.full((3,), 2.0, dtype=torch.float16).exp()

    trace = record(step, values="stats")
    assert {"aten.bernoulli.default", "aten.rand_like.default", "aten.full.default"} <= set(recorded_ops(trace))
    assert "float16" in set(trace.tensors["dtype"])


def test_an_empty_recording_has_empty_frames():
    trace = record(lambda: None)
    assert (len(trace.ops), len(trace.tensors), len(trace.modules)) == (0, 0, 0)
    assert trace.complete
    assert (trace.meta["devices"], trace.meta["skipped"], trace.meta["filtered_ops"]) == ([], {}, 0)
    assert isinstance(trace.summary(), str)


def test_a_recording_without_ops():
    identity = nn.Identity()
    trace = record(lambda: identity(3))
    assert len(trace.ops) == 0
    assert trace.modules[["type", "calls"]].values.tolist() == [["Identity", 1]]


def test_meta_of_a_recording():
    trace = record(lambda: torch.ones(2), name="mine")
    assert (trace.meta["verb"], trace.meta["name"], trace.meta["complete"]) == ("optrace", "mine", True)
    assert trace.meta["error"] is None
    assert trace.meta["versions"]["torch"] == torch.__version__
    assert trace.meta["machine"].startswith(f"{platform.system()} {platform.machine()}")
    assert trace.meta["devices"] == ["cpu"]
    assert trace.meta["recorder_us"] > 0
    assert trace.ops["total_time_us"].sum() < trace.meta["wall_us"] * 2
