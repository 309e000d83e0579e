"""forward_op_id is the op whose gradient is computed: checked against grad_fn names and sequence numbers."""

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from nbkit.capture.frames.op_rows import forward_ops
from tests.capture.models import aten, record

A = [1.5, -0.5, 0.25, 2.0]
# Forward op -> the function, and the aten packet that the node's gradient belongs to.
FUNCTIONS = {
    "exp": (torch.exp, "aten.exp"),
    "relu": (F.relu, "aten.relu"),
    "gelu": (F.gelu, "aten.gelu"),
    "softmax": (lambda x: F.softmax(x, 0), "aten._softmax"),
    "mul": (lambda x: x * x, "aten.mul"),
    "sort": (lambda x: x.sort().values, "aten.sort"),
    "max": (lambda x: x.max(0).values, "aten.max"),
    "index": (lambda x: x[[0, 2]], "aten.index"),
    "select": (lambda x: x[1], "aten.select"),
    "slice": (lambda x: x[1:], "aten.slice"),
    "cat": (lambda x: torch.cat([x, x]), "aten.cat"),
    "stack": (lambda x: torch.stack([x, x]), "aten.stack"),
    "split": (lambda x: x.split(2)[1], "aten.split"),
    "chunk": (lambda x: x.chunk(2)[0], "aten.split"),
    "unbind": (lambda x: x.unbind()[3], "aten.unbind"),
    "var_mean": (lambda x: torch.var_mean(x)[0], "aten.var_mean"),
    "view": (lambda x: x.view(2, 2), "aten.view"),
    "norm": (lambda x: torch.linalg.vector_norm(x), "aten.linalg_vector_norm"),
    "cumsum": (lambda x: x.cumsum(0), "aten.cumsum"),
    "where": (lambda x: torch.where(x > 0, x, 2 * x), "aten.where"),
    "clone": (torch.clone, "aten.clone"),
    "to": (lambda x: x.to(torch.float64), "aten._to_copy"),
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), "aten.native_layer_norm"),
    "svd": (lambda x: torch.linalg.svd(x.view(2, 2))[1], "aten._linalg_svd"),
    "in place": (lambda x: x.clone().mul_(3), "aten.mul_"),
    "in place that overwrites what its gradient needs": (lambda x: x.clone().mul_(x), "aten.mul_"),
    "in place on a view": (lambda x: write_view(x), "aten.exp_"),
    "setitem": (lambda x: write_item(x), "aten.copy_"),
}


def write_view(x):
    y = x.clone()
    y[1:3].exp_()
    return y


def write_item(x):
    y = torch.zeros(4)
    y[1:3] = x[:2]
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_first_backward_ops_belong_to_the_op_that_made_the_node(name):
    """Defects B37, B39: gradients stand at the right op, also through views."""
    function, packet = FUNCTIONS[name]
    x = torch.tensor(A, requires_grad=True)

    def step():
        function(x).backward(torch.ones_like(function(x)))

    trace = record(step)
    backward = aten(trace)[(aten(trace)["phase"] == "backward")]
    linked = backward["forward_op_id"].dropna()
    if name == "clone":
        assert len(linked) == 0  # its node passes the gradient on and runs no op
    elif name in ("setitem", "select", "slice"):
        assert packet in {op.rsplit(".", 1)[0] for op in trace.ops.loc[linked, "op"]}
    else:
        assert trace.ops.loc[linked.iloc[0], "op"].rsplit(".", 1)[0] == packet


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).contiguous() + 0

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def test_the_backward_of_a_custom_function_belongs_to_its_forward():
    x = torch.tensor(A, requires_grad=True)
    trace = record(lambda: Square.apply(x * 3).sum().backward())
    rows = aten(trace)
    backward = rows[rows["source"].str.endswith(f":{Square.backward.__code__.co_firstlineno + 3}")]
    assert backward["op"].tolist() == ["aten.mul.Tensor"] * 2
    assert set(backward["phase"]) == {"backward"}
    forward = trace.ops.loc[backward["forward_op_id"]]
    assert set(forward["source"].str.rsplit(":").str[-1]) == {str(Square.forward.__code__.co_firstlineno + 3)}


def test_a_graph_that_is_run_twice_points_twice_to_the_same_op():
    x = torch.tensor(A, requires_grad=True)

    def step():
        y = x.exp().sum()
        y.backward(retain_graph=True)
        y.backward()

    trace = record(step)
    (exp,) = aten(trace, "aten.exp")["op_id"]
    multiplications = aten(trace, "aten.mul")
    assert multiplications["forward_op_id"].tolist() == [exp, exp]


def test_a_node_from_before_the_recording_has_no_forward_op():
    x = torch.tensor(A, requires_grad=True)
    y = x.exp()
    trace = record(lambda: (y.sin()).sum().backward())
    rows = aten(trace)[aten(trace)["phase"] == "backward"].set_index("op")
    (sin,) = aten(trace, "aten.sin")["op_id"]
    assert rows["forward_op_id"]["aten.cos.default"] == sin
    last = rows.iloc[-2] if rows.index[-1].startswith("aten.detach") else rows.iloc[-1]
    assert last.name == "aten.mul.Tensor"
    assert pd.isna(last["forward_op_id"])


def test_double_backward_links_the_ops_of_the_first_backward():
    x = torch.tensor(A, requires_grad=True)

    def step():
        (slope,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
        slope.sum().backward()

    trace = record(step)
    (cos,) = aten(trace, "aten.cos")["op_id"]  # made by the backward of sin, has a node of its own
    (second,) = aten(trace, "aten.neg")["op_id"]
    assert trace.ops["forward_op_id"][second] == cos


def test_sequence_numbers_of_the_nodes_lead_to_the_ops_whose_results_they_are():
    """By hand: the op of a node is the one whose output carries that node as grad_fn."""
    x, made = torch.tensor(A, requires_grad=True), []

    def step():
        y = x
        for function in (torch.exp, torch.neg, lambda t: t * t, lambda t: t.view(2, 2), lambda t: t.t(), torch.relu):
            y = function(y)
            made.append(y.grad_fn.name())
        y.backward(torch.ones(2, 2))

    trace = record(step)
    back = aten(trace)[aten(trace)["phase"] == "backward"]
    linked = trace.ops.loc[back["forward_op_id"].dropna(), "op"].drop_duplicates().tolist()
    assert made == ["ExpBackward0", "NegBackward0", "MulBackward0", "ViewBackward0", "TBackward0", "ReluBackward0"]
    names = ["exp.default", "neg.default", "mul.Tensor", "view.default", "t.default", "relu.default"]
    assert linked == [f"aten.{name}" for name in reversed(names)]


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_parts_run_again_in_the_backward_phase_and_link_to_the_run(reentrant):
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.ones(1, 3, requires_grad=True)
    trace = record(lambda: checkpoint(model, x, use_reentrant=reentrant).sum().backward())
    tanh = aten(trace, "aten.tanh")
    assert tanh["phase"].tolist() == ["forward", "backward"]
    assert tanh["module"].tolist() == ["1", "1"]
    (gradient,) = aten(trace, "aten.tanh_backward").itertuples()
    assert trace.ops["op"][gradient.forward_op_id] == "aten.tanh.default"
    assert gradient.module == "1"
    assert trace.modules["calls"].tolist() == [2, 2, 2]


def test_tensor_hooks_see_the_gradients_that_were_recorded():
    """Hook gradients equal .grad, traced and bare, and their ops are backward ops."""
    x = torch.tensor(A, requires_grad=True)
    seen = []

    def step():
        y = x.exp()
        y.register_hook(lambda grad: (seen.append(grad.clone()), grad * 2)[1])
        x.register_hook(seen.append)
        y.sum().backward()

    trace = record(step)
    assert torch.equal(seen[0], torch.ones(4))
    assert torch.equal(seen[1], x.grad)
    assert torch.equal(x.grad, 2 * x.detach().exp())
    assert set(aten(trace, "aten.clone")["phase"]) == {"backward"}


def test_links_from_readings_of_the_counter():
    """Ops with readings 5, 6, 6, 8 made nodes 4, 5, none, 7; node 9 is a CopySlices made after its op."""
    sequences, rows = np.array([5, 6, 6, 8, 9]), np.array([0, 2, 3, 5, 7])
    nodes = np.array([4, 5, 7, 3, 9, 20])
    found = forward_ops(nodes, np.array([0, 0, 0, 0, 1, 0], dtype=bool), sequences, rows, first=4)
    assert found.tolist() == [0, 2, 5, -1, 7, -1]


def test_a_call_without_ops_is_kept_if_it_returns_a_tensor():
    trace = record(lambda: (torch.ones(2).contiguous(), torch.is_complex(torch.ones(2))))
    api = trace.ops.loc[trace.ops["level"] == "api", "op"].tolist()
    assert api == ["torch.ones", "torch.Tensor.contiguous", "torch.ones"]


class Inner(nn.Module):
    """Runs a backward pass of its own in its forward pass."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        self.linear(x).sum().backward()
        return x * 2


def test_a_backward_pass_inside_a_module_is_no_part_of_its_forward_pass():
    model, x = Inner(), torch.tensor(A)
    ops = record(lambda: model(x)).ops
    (start,) = ops.index[ops["op"] == "torch.Tensor.backward"]
    (end,) = ops.index[ops["op"] == "torch.Tensor.mul"]
    assert set(ops["phase"][start:end]) == {"backward"}
    assert set(ops["phase"][:start]) | set(ops["phase"][end:]) == {"forward"}


def test_a_gradient_is_added_up_for_the_module_that_holds_the_parameter_even_if_it_never_runs():
    class Borrows(nn.Module):
        """Grows a head after its first call."""

        def __init__(self):
            super().__init__()
            self.norm, self.heads = nn.LayerNorm(2), nn.ModuleList()

        def forward(self, x):
            x = F.layer_norm(x, (2,), self.norm.weight)
            return F.linear(x, self.heads[0].weight) if self.heads else x

    model, x = Borrows(), torch.ones(1, 2)

    def step():
        model(x)
        model.heads.append(nn.Linear(2, 2))
        for _ in range(2):
            model(x).sum().backward()

    added = aten(record(step), "aten.add_")
    assert sorted(added["module"]) == ["heads.0", "norm"] and set(added["model"]) == {"Borrows"}
