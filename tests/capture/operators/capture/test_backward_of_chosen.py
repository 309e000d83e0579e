"""backward=True brings the calls that compute the gradients of a chosen op, and no others."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import nbkit
from tests.capture.models import mlp

SORT = {"sort", "zeros", "scatter_", "new_zeros", "scatter"}  # of the recorder in C++, and under a dispatch mode


@pytest.fixture(params=["native", "python"], autouse=True)
def recorder(request, monkeypatch):
    """Runs both recorders, the native one where it is built."""
    monkeypatch.delenv("NBKIT_RECORDER", raising=False)
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


def sorting(x):
    """Returns the leaf and the result of a step with sort between two other ops; its gradient is twice the result."""
    leaf = x.clone().requires_grad_()
    result = (leaf * 2).sort(dim=1).values
    result.square().sum().backward()
    return leaf, result.detach()


def packets(frame):
    return [op.split(".")[1] for op in frame["op"]]


def test_sort_brings_its_gradients(tmp_path):
    with nbkit.opcapture(tmp_path / "calls", ops="torch.Tensor.sort", backward=True) as trace:
        _, result = sorting(torch.randn(3, 4))
    assert packets(trace.captures)[0] == "sort"
    assert set(packets(trace.captures)) <= SORT
    assert trace.captures["phase"].tolist() == ["forward", "backward", "backward"]
    last = nbkit.call_of(tmp_path / "calls", 2)
    gradients = [value for value in last.args if isinstance(value, torch.Tensor) and value.is_floating_point()]
    assert any(torch.equal(value, 2 * result) for value in gradients)  # grad_outputs
    expected = torch.zeros(3, 4).scatter(1, last.args[2], 2 * result)
    assert torch.equal(last.results[0].actual, expected)  # grad_inputs
    assert nbkit.opreplay(tmp_path / "calls").meta["identical_calls"] == 3


def test_without_it_the_forward_call_is_alone(tmp_path):
    with nbkit.opcapture(tmp_path / "calls", ops="torch.Tensor.sort") as trace:
        sorting(torch.randn(3, 4))
    assert packets(trace.captures) == ["sort"]


@pytest.mark.parametrize("verb", [nbkit.optrace, nbkit.opdiff])
def test_rows_are_those_whose_forward_op_is_chosen(verb):
    x = torch.randn(3, 4)
    with nbkit.optrace() as every:
        sorting(x)
    with verb(ops="torch.Tensor.sort", backward=True) as trace:
        sorting(x)
    ops = every.ops
    if verb is nbkit.optrace:
        (chosen,) = ops.index[ops["op"].str.startswith("aten.sort")]
        backward = ops[ops["forward_op_id"] == chosen]["op"].tolist()
        assert trace.ops["op"].tolist() == ["torch.Tensor.sort", ops["op"][chosen], *backward]
        assert trace.meta["filters"] == {"ops": "torch.Tensor.sort", "backward": "True"}
    else:
        assert set(trace.diffs["phase"]) == {"forward", "backward"}
        assert set(packets(trace.diffs)) <= SORT


def test_only_the_chosen_calls_bring_theirs(tmp_path):
    x = torch.randn(3, 4, requires_grad=True)
    y = torch.randn(3, 4, requires_grad=True)
    with nbkit.opcapture(tmp_path / "calls", ops="sigmoid", calls="1", backward=True) as trace:
        (x.sigmoid() + y.sigmoid().tanh()).sum().backward()
    kept = trace.captures[trace.captures["op"] != "aten.detach.default"]  # under a dispatch mode
    assert kept["op"].tolist() == ["aten.sigmoid.default", "aten.sigmoid_backward.default"]
    gradient, value = nbkit.call_of(tmp_path / "calls", kept["record"].iloc[1]).args
    assert torch.equal(value, y.sigmoid())
    assert not torch.equal(gradient, torch.ones(3, 4))  # tanh stands behind it


@pytest.mark.parametrize("verb", [nbkit.optrace, nbkit.opfallback])
def test_what_is_run_again_in_the_backward_pass_is_no_backward_work(verb):
    torch.manual_seed(0)
    model, x = mlp(), torch.randn(5, 6, requires_grad=True)
    with verb(ops="aten.addmm", backward=True) as trace:
        checkpoint(model, x, use_reentrant=False).sum().backward()
    linears = sum(isinstance(module, torch.nn.Linear) for module in model.modules())
    met = packets(trace.ops if verb is nbkit.optrace else trace.replaced)
    assert met.count("addmm") in (2 * linears - 1, 2 * linears)  # a checkpoint ends when it has all that it needs
    assert met.count("mm") == 2 * linears
    assert set(met) <= {"addmm", "mm", "t", "sum", "view", "detach"}


def test_a_fallback_takes_both_passes_to_the_cpu():
    x = torch.randn(3, 4, requires_grad=True)
    with nbkit.opfallback(ops="torch.softmax", backward=True) as trace:
        torch.softmax(x * 2, 1).square().sum().backward()
    assert trace.replaced["op"].tolist() == ["aten._softmax.default", "aten._softmax_backward_data.default"]


@pytest.mark.parametrize("verb", [nbkit.optrace, nbkit.opfallback])
def test_what_is_excluded_stays_out(verb):
    with verb(ops="torch.Tensor.sort", exclude_ops="aten.zeros,aten.new_zeros", backward=True) as trace:
        sorting(torch.randn(3, 4))
    met = packets(trace.ops if verb is nbkit.optrace else trace.replaced)
    assert met[-1] in ("scatter_", "scatter") and not {"zeros", "new_zeros"} & set(met)
