"""What torch.compile was given is counted op by op, and stays compiled."""

import pytest
import torch
from torch import nn

import nbkit
from nbkit.capture.cost.fake.uncompiled import NOTE


class Model(nn.Module):
    """Has no length: neither has what torch.compile makes of it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x).relu()


NUMBERS = ["op", "phase", "flops", "elementwise_flops", "read_bytes", "written_bytes"]
X = torch.randn(3, 4)


def costed(model):
    model.zero_grad()
    return nbkit.opcost().run(lambda: model(X).sum().backward())


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_compiled_model_costs_what_its_ops_cost(backend):
    model = Model()
    plain, compiled = costed(model), costed(torch.compile(model, backend=backend))
    assert compiled.costs[NUMBERS].equals(plain.costs[NUMBERS]) and plain.costs["flops"].sum() == 96
    assert compiled.saved["new_bytes"].sum() == plain.saved["new_bytes"].sum() == 72
    assert compiled.memory["allocated_bytes"].equals(plain.memory["allocated_bytes"])
    assert set(compiled.costs["module"].dropna()) == {"", "_orig_mod.layer"}
    assert compiled.meta["notes"] == [NOTE] and plain.meta["notes"] == []


def test_what_is_compiled_stays_so():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(Model(), backend=backend)
    before = compiled(X)
    assert costed(compiled).meta["notes"] == [NOTE] and len(graphs) == 1
    assert torch.equal(compiled(X), before) and len(graphs) == 1
    torch.compile(lambda x: x + 1, backend=backend)(X)
    assert len(graphs) == 2


def test_a_function_is_counted_too():
    compiled = torch.compile(lambda x: x @ x, backend="eager", fullgraph=True)
    trace = nbkit.opcost().run(lambda: compiled(torch.ones(4, 4)))
    assert trace.costs["flops"].sum() == 128 and trace.meta["notes"] == [NOTE]


def test_a_backward_pass_of_a_compiled_forward_pass_from_before_is_refused():
    loss = torch.compile(Model(), backend="aot_eager")(X).sum()
    with pytest.raises(nbkit.CostError, match="run both in the recorded code"), nbkit.opcost():
        loss.backward()
    loss.backward()
