"""A step under FakeTensorMode is recorded as the real one: the graph of a model that no memory would hold."""

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from nbkit.analysis.graph.op_graph import trace_graph
from nbkit.capture.graphs.module_tree import module_tree
from sample_models.llama import LLAMA_7B, LLAMA_TINY, Llama

SAME_OPS = ["op", "level", "parent_id", "module", "module_call", "phase", "forward_op_id", "device", "source"]
SAME_TENSORS = ["op_id", "role", "position", "name", "dtype", "shape", "stride", "device", "size_bytes"]
EDGES = ["src", "src_port", "dst", "dst_port", "dtype", "shape"]


def recorded_step(mode=None):
    """Returns the trace of the second training step."""
    model = Llama(LLAMA_TINY)
    ids = torch.arange(16).reshape(2, 8)
    if mode is not None:
        ids = mode.from_tensor(ids)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    for _ in range(2):
        with nbkit.optrace() as trace:
            optimizer.zero_grad()
            model(ids, ids).backward()
            optimizer.step()
    return trace


class Passing(TorchDispatchMode):
    """Changes nothing but what autograd does where any dispatch mode is on, as the fake one is."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_a_fake_step_has_the_ops_tensors_and_edges_of_the_real_one():
    with Passing():
        real = recorded_step()
    with FakeTensorMode() as mode:
        fake = recorded_step(mode)
    assert fake.ops[SAME_OPS].equals(real.ops[SAME_OPS])
    assert fake.tensors[SAME_TENSORS].equals(real.tensors[SAME_TENSORS])
    edges = [trace_graph(one.ops, one.tensors, one.modules)["edges"][EDGES] for one in (fake, real)]
    assert edges[0].equals(edges[1])
    assert fake.modules.equals(real.modules)
    assert len(fake.ops) > 600


@pytest.mark.parametrize("order", ["mode outside", "mode inside"])
def test_modes_nest_in_either_order(order):
    mode, recorder = FakeTensorMode(), nbkit.optrace()
    with mode:
        layer, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
    outer, inner = (mode, recorder) if order == "mode outside" else (recorder, mode)
    with outer, inner:
        layer(x).sum().backward()
    names = recorder.trace.ops["op"]
    assert names[names.str.startswith("aten.")].tolist()[:3] == [
        "aten.t.default",
        "aten.addmm.default",
        "aten.sum.default",
    ]


def test_a_value_that_does_not_exist_is_the_users_error_and_the_trace_is_kept():
    with FakeTensorMode(), pytest.raises(DataDependentOutputException), nbkit.optrace() as trace:
        torch.ones(2).sum().item()
    assert trace.meta["error"]["message"] == "aten._local_scalar_dense.default"
    assert trace.ops["op"].iloc[-1] == "aten._local_scalar_dense.default"


def test_the_tree_of_a_7b_model_holds_no_memory():
    with FakeTensorMode():
        frames = module_tree(Llama(LLAMA_7B))
    assert frames["modules"].loc[0, ["params", "param_bytes"]].tolist() == [6_738_415_616, 26_953_662_464]
    assert frames["graph_tensors"]["numel"].sum() == 6_738_415_616
