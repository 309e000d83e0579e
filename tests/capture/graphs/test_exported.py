"""Tests that nodes and edges of an exported program's graph are those that torch.fx says it has."""

import json
from operator import getitem

import pytest
import torch
from torch import nn

from nbkit.capture.graphs.exported import exported_graph
from tests.support.graph_models import MODELS, exported, model


def by_name(frames):
    return frames["nodes"].set_index("name")


def edge_names(frames, graph="export"):
    """Returns edges of a graph as (maker, port, reader, slot)."""
    nodes = frames["nodes"]
    edges = frames["edges"][nodes["graph"][frames["edges"]["dst"]].eq(graph).to_numpy()]
    makers, readers = nodes["name"][edges["src"]], nodes["name"][edges["dst"]]
    slots = edges["slot"].astype(object).where(edges["slot"].notna(), None)
    return list(zip(makers, edges["src_port"], readers, slots, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_ops_and_references_are_those_of_the_fx_graph(name):
    program = exported(name)
    frames = exported_graph(program)
    nodes = frames["nodes"][frames["nodes"]["graph"] == "export"]
    calls = [node for node in program.graph.nodes if node.op == "call_function" and node.target is not getitem]
    found = nodes.loc[nodes["kind"] == "op", ["name", "op"]].values.tolist()
    assert [pair for pair in found if not pair[1].startswith("higher_order.")] == [
        [node.name, str(node.target)] for node in calls if isinstance(node.target, torch._ops.OpOverload)
    ]
    reads = [(node.name, read.name) for node in calls for read in node.all_input_nodes if read.op != "get_attr"]
    pairs = {(reader, tensor) for reader, tensor in zip(*_readers(frames), strict=True)}
    signature = program.graph_signature
    own = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    own |= dict(signature.inputs_to_lifted_tensor_constants)
    assert {(reader, own.get(read, read)) for reader, read in reads} == pairs


def _readers(frames):
    nodes = frames["nodes"]
    is_op = (nodes["kind"].eq("op") & nodes["graph"].eq("export"))[frames["edges"]["dst"]].to_numpy()
    edges = frames["edges"][is_op]
    return nodes["name"][edges["dst"]], edges["tensor"]


@pytest.mark.parametrize("name", MODELS)
def test_parameters_have_the_names_shapes_and_numbers_of_the_model(name):
    frames = exported_graph(exported(name))
    nodes = frames["nodes"][frames["nodes"]["kind"] == "parameter"]
    named = model(name).named_parameters(remove_duplicate=False)
    assert dict(zip(nodes["name"], nodes["shape"], strict=True)) == {path: str(list(it.shape)) for path, it in named}
    total = sum(parameter.numel() for parameter in model(name).parameters())
    assert frames["modules"].loc[0, ["module", "params"]].tolist() == ["", total]


@pytest.mark.parametrize("name", ["llama", "rwkv4"])
def test_modules_are_paths_and_classes_of_the_model(name):
    frames = exported_graph(exported(name))
    types = {path: type(it).__name__ for path, it in model(name).named_modules()}
    modules = frames["modules"].set_index("module")
    assert all(types[path] == kind for path, kind in modules["type"].dropna().items())
    ops = frames["nodes"][frames["nodes"]["op"] == "aten.linear.default"]
    assert [types[path] for path in ops["module"]] == ["Linear"] * len(ops)
    assert ops["source"].str.startswith("sample_models/").all()


class Odd(nn.Module):
    """Has a shared layer called twice, a changed buffer, two results, a branch, constants, many kinds of output."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.second = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(3))
        self.shift = torch.ones(3)

    def forward(self, x):
        x = self.first(self.first(x))
        self.seen.add_(1)
        _, right = x.split([2, 1], dim=1)
        y = torch.cond(x.sum() > 0, lambda t: t.sin() + self.shift, lambda t: t.cos(), (x,))
        return {"y": y + self.seen, "right": [right], "size": x.shape[0], "none": None}


@pytest.fixture(scope="module")
def odd():
    rows = torch.export.Dim("rows", min=2, max=9)
    return exported_graph(torch.export.export(Odd(), (torch.ones(4, 3),), dynamic_shapes={"x": {0: rows}}))


def test_symbols_are_null_in_shapes_and_named_in_attributes(odd):
    x = by_name(odd).loc["x"]
    assert (x["kind"], x["shape"]) == ("input", "[null, 3]")
    sizes = json.loads(x["attributes"])["sizes"]
    assert sizes[1] == "3" and sizes[0] != "4"


def test_results_of_an_op_are_ports_and_an_overwritten_tensor_is_read_from_its_writer(odd):
    edges = edge_names(odd)
    assert ("split_with_sizes", 1, "output_1", None) in edges
    assert ("seen", 0, "add_", "self") in edges
    assert ("add_", 0, "add", "other") in edges


def test_a_branch_is_a_further_graph(odd):
    nodes = odd["nodes"]
    (cond,) = nodes.index[nodes["op"] == "higher_order.cond"]
    graphs = json.loads(nodes["attributes"][cond])["graphs"]
    assert nodes["graph"].drop_duplicates().tolist() == ["export", *graphs]
    inner = nodes[nodes["graph"] == graphs[0]]
    assert inner["op"].dropna().tolist() == ["aten.sin.default", "aten.add.Tensor"]
    assert [edge[2] for edge in edge_names(odd, graphs[1])] == ["cos", "output"]


def test_what_is_shared_constant_or_called_again_is_said(odd):
    nodes = by_name(odd)[lambda nodes: nodes["graph"] == "export"]
    assert json.loads(nodes.loc["second.weight", "attributes"]) == {"same_as": "first.weight"}
    assert nodes.loc["shift", "kind"] == "constant"
    assert json.loads(nodes.loc["linear_1", "attributes"])["module_call"] == "1"
    first = odd["modules"].set_index("module").loc["first"]
    assert (first["type"], first["calls"], first["params"]) == ("Linear", 2, 12)
    assert json.loads(nodes.loc["output_3", "attributes"]) == {"value": None}


def test_a_symbolic_trace_calls_modules_which_read_their_parameters():
    frames = exported_graph(torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU())))
    assert frames["nodes"].loc[frames["nodes"]["kind"] == "op", ["op", "module"]].values.tolist() == [
        ["Linear", "0"],
        ["ReLU", "1"],
    ]
    assert edge_names(frames) == [
        ("input_1", 0, "_0", None),
        ("0.weight", 0, "_0", "weight"),
        ("0.bias", 0, "_0", "bias"),
        ("_0", 0, "_1", None),
        ("_1", 0, "output", None),
    ]
    assert frames["edges"]["dst_port"].tolist() == [0, 1, 2, 0, 0]


def test_a_symbolic_trace_reads_each_tensor_of_its_module_once():
    class Holds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))
            self.register_buffer("seen", torch.zeros(3))
            self.shift = torch.ones(3)

        def forward(self, x):
            return (x * self.scale + self.seen) * self.scale + self.shift

    frames = exported_graph(torch.fx.symbolic_trace(Holds()))
    reads = [(source, target) for source, _, target, _ in edge_names(frames)]
    assert reads[:4] == [("x", "mul"), ("scale", "mul"), ("mul", "add"), ("seen", "add")]
    assert reads[4:] == [
        ("add", "mul_1"),
        ("scale", "mul_1"),
        ("mul_1", "add_1"),
        ("shift", "add_1"),
        ("add_1", "output"),
    ]
    nodes = by_name(frames)
    assert nodes.loc[["scale", "seen", "shift"], "kind"].tolist() == ["parameter", "buffer", "buffer"]


def test_odd_names_of_modules_are_text():
    class Hostile(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module("</script>", nn.ModuleDict({"__import__['os']": nn.Linear(2, 2)}))

        def forward(self, x):
            return self._modules["</script>"]["__import__['os']"](x)

    frames = exported_graph(torch.export.export(Hostile(), (torch.ones(1, 2),)))
    assert frames["modules"]["module"].tolist() == ["", "</script>", "</script>.__import__['os']"]
    assert by_name(frames).loc["linear", "module"] == "</script>.__import__['os']"


def test_what_dynamo_captures_has_its_parameters_and_module_paths():
    captured = []
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2, bias=False)), nn.Tanh())
    torch.compile(model, backend=lambda module, _: captured.append(module) or module.forward)(torch.ones(1, 2))
    nodes = exported_graph(captured[0])["nodes"]
    assert nodes["kind"].tolist() == ["parameter", "input", "op", "op", "output"]
    assert nodes["module"].dropna().tolist() == ["0.0", "1"]


def test_a_graph_without_a_record_of_modules_has_those_that_it_calls():
    """As made by hand: a layer, a graph inside the graph, a method, and results in a dict."""
    graph, inner = torch.fx.Graph(), torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    x = graph.placeholder("x")
    y = graph.call_module("layer", (x,))
    z = graph.call_module("inner", (y,))
    graph.output({"exp": graph.call_method("exp", (z,)), "rest": [z]})
    frames = exported_graph(torch.fx.GraphModule({"layer": nn.Linear(2, 2), "inner": inner}, graph))
    nodes = frames["nodes"]
    ops = nodes[nodes["kind"] == "op"]
    assert ops[["graph", "op"]].values.tolist() == [
        ["export", "Linear"],
        ["export", "Sequential"],
        ["export", "torch.Tensor.exp"],
        ["export inner", "Linear"],
    ]
    assert json.loads(ops["attributes"].iloc[1])["graphs"] == ["export inner"]
    assert [edge[:3] for edge in edge_names(frames)] == [
        ("x", 0, "layer"),
        ("layer.weight", 0, "layer"),
        ("layer.bias", 0, "layer"),
        ("layer", 0, "inner"),
        ("inner", 0, "exp"),
        ("exp", 0, "output_0"),
        ("inner", 0, "output_1"),
    ]
    modules = frames["modules"].set_index("module")
    assert modules.loc["layer", ["type", "calls", "params"]].tolist() == ["Linear", 1, 6]


def test_a_buffer_that_a_functional_program_replaces_is_named_at_its_output():
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(2))

        def forward(self, x):
            self.seen.add_(1)
            return x + self.seen

    program = torch.export.export(Counts(), (torch.ones(2),)).run_decompositions({})
    nodes = exported_graph(program)["nodes"]
    outputs = nodes.loc[nodes["kind"] == "output", "attributes"]
    assert [json.loads(text) for text in outputs.dropna()] == [{"new_value_of": "seen"}] and len(outputs) == 2
