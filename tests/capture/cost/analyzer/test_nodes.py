"""The nodes of the table are those of the graph that torch.fx traces, and of models that it cannot trace."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.fx import symbolic_trace

import nbkit
from sample_models.vit import VIT_TINY, ViT


class Operators(nn.Module):
    """Every form in which a model calls a function."""

    def __init__(self):
        super().__init__()
        self.Linear = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, input):  # noqa: A002  a name that no node may have
        x = -(1 - (input + 1) * self.scale) / 2
        x = 2 / (3 - x**2) % 5 @ x.t()
        x = x.add(self.shift).pow(2).sub(x) + torch.mul(x, self.scale)
        x = F.relu(x.sum(0, keepdim=True) + self.shift)
        first, second = x.chunk(2, dim=1)
        third, fourth = second.split(1, dim=1)  # a method that Python runs
        x = torch.cat([first, third, fourth], dim=1).view(-1, 4).T.expand(4, 4)
        values, _ = x.max(0)
        x = self.Linear(self.Linear(x)[:, :4].contiguous().float())
        return F.layer_norm(x, (4,), self.scale), torch.where(values > 0, values, self.shift)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        out, (_, _) = self.rnn(x)
        return self.head(out[:, -1])


MODELS = {
    "operators": (Operators, (4, 4)),
    "recurrent": (Recurrent, (2, 3, 4)),
    "vit": (lambda: ViT(VIT_TINY), (2, 3, 32, 32)),
    "sequence": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()), (2, 3, 8, 8)),
    "linear": (lambda: nn.Linear(3, 4), (2, 3)),
    "encoder": (lambda: nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), (2, 3, 8)),
}


def nodes(table):
    return list(zip(table["op_kind"], table["name"], strict=True))


def without_shapes(graph):
    """The nodes of a graph without those that ask for a shape, which a run that has shapes asks nobody for."""
    shapes = {node for node in graph.nodes if node.args[1:2] == ("shape",)}
    shapes |= {node for node in graph.nodes if node.args and node.args[0] in shapes}
    return [(node.op, node.name) for node in graph.nodes if node not in shapes]


@pytest.mark.parametrize("name", MODELS)
def test_they_are_those_that_fx_traces(name):
    make, shape = MODELS[name]
    model = make()
    kinds_and_names = without_shapes(symbolic_trace(model).graph)
    found = nodes(nbkit.cost_table(model, torch.randn(shape)))
    if name == "vit":  # fx numbers the items of a shape with the others
        kinds_and_names, found = (
            [node for node in each if "getitem" not in node[1]] for each in (kinds_and_names, found)
        )
    assert found == kinds_and_names


class Branches(nn.Module):
    def forward(self, x):
        if x.dim() == 3:
            return x * 2 + 1
        return x - 5


@pytest.mark.parametrize(
    ("shape", "names"), [((2, 3, 4), ["x", "mul", "add", "output"]), ((2, 3), ["x", "sub", "output"])]
)
def test_a_branch_on_shapes_is_taken(shape, names):
    assert nbkit.cost_table(Branches(), torch.ones(shape))["name"].tolist() == names


class Nested(nn.Module):
    """A module of the user's own, called twice, whose function is in it; results in a dict."""

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(Block())

    def forward(self, x, *, mask=None):
        y = self.block(self.block(x))
        return {"y": y, "nothing": None, "pair": (x, y * mask)}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8, bias=False)

    def forward(self, x):
        return F.relu(self.linear(x))


def test_a_module_that_is_called_twice_has_two_rows_and_a_function_the_module_it_is_in():
    table = nbkit.cost_table(Nested(), torch.randn(4, 8), mask=torch.ones(8)).set_index("name")
    assert table.index.tolist() == [
        "x", "mask", "block_0_linear", "relu", "block_0_linear_1", "relu_1", "mul", "output"
    ]  # fmt: skip
    assert table["module"].dropna().to_dict() == {
        "block_0_linear": "block.0.linear",
        "relu": "block.0",
        "block_0_linear_1": "block.0.linear",
        "relu_1": "block.0",
        "mul": "",
    }
    assert table["forward_flops"].sum() == 2 * 512
    assert (
        table.loc["block_0_linear_1", "backward_flops"] == 2 * 512 == 2 * table.loc["block_0_linear", "backward_flops"]
    )
    assert table.loc["mul", "backward_bytes"] == 4 * (4 * 8 + 8)


def test_a_call_in_place_and_one_that_writes_are_functions():
    class Writes(nn.Module):
        def forward(self, x):
            y = x.clone()
            y += 1
            y[0] = 0
            return y.mul_(2)

    found = nodes(nbkit.cost_table(Writes(), torch.ones(3)))
    assert found == [
        ("placeholder", "x"),
        ("call_method", "clone"),
        ("call_function", "add_"),
        ("call_function", "setitem"),
        ("call_method", "mul_"),
        ("output", "output"),
    ]


def test_a_parameter_that_a_module_hands_on_is_no_memory_that_the_node_made():
    class HandsOn(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.same = nn.Parameter(torch.ones(4)), nn.Identity()

        def forward(self, x):
            return x * self.same(self.scale)

    table = nbkit.cost_table(HandsOn(), torch.ones(2, 4)).set_index("name")
    assert table.loc[["x", "same", "mul"], "output_bytes"].tolist() == [32, 0, 0]
    assert table.loc[["x", "same", "mul"], "temp_bytes"].tolist() == [0, 0, 32]
    assert table.loc["mul", "param_bytes"] == 16


class Several(nn.Module):
    def forward(self, x):
        return x.half(), x.topk(2)


def test_a_node_tells_shape_dtype_and_device_of_what_it_returns():
    model = nn.Sequential(nn.Linear(4, 3), Several())
    table = nbkit.cost_table(model, torch.ones(2, 4)).set_index("name")[["shape", "dtype", "device"]]
    assert table.loc["_0"].tolist() == ["[2, 3]", "float32", "cpu"]
    assert table.loc["half"].tolist() == ["[2, 3]", "float16", "cpu"]
    assert table.loc["topk"].tolist() == ["[2, 2], [2, 2]", "float32, int64", "cpu"]
    assert table.loc["output"].tolist() == ["[2, 3], [2, 2], [2, 2]", "float16, float32, int64", "cpu"]
    assert table.loc["input_1"].tolist() == ["[2, 4]", "float32", "cpu"]


class Moved(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3, device="cuda")

    def forward(self, x):
        return self.layer(x.cuda()).cpu().to(torch.float64).to("cpu")


def test_a_model_on_a_device_that_is_not_there_has_its_nodes():
    if torch.cuda.is_available():
        pytest.skip("CUDA is there")
    table = nbkit.cost_table(Moved, torch.ones(2, 4)).set_index("name")
    assert [*table.index] == ["x", "cuda", "layer", "cpu", "to", "to_1", "output"]
    assert table["op_kind"][["cuda", "cpu", "to"]].tolist() == ["call_method"] * 3
    assert table["device"].tolist() == ["cpu", "cuda:0", "cuda:0", "cpu", "cpu", "cpu", "cpu"]
