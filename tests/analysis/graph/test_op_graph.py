"""The op graph of a trace: ops and edges as torch's own tracer finds them; the last writer where memory changes."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

import nbkit
from nbkit.analysis.graph.op_graph import trace_graph
from nbkit.analysis.graph_match.compare_graphs import compare_graphs
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY

IDS = torch.arange(16).reshape(2, 8)


def graph_of(step):
    with nbkit.optrace() as trace:
        step()
    return trace_graph(trace.ops, trace.tensors, trace.modules)


def edges_of(frames):
    """(maker, its port, reader, its port) by the names of the nodes."""
    name = frames["nodes"]["name"]
    return [(name[src], out, name[dst], port) for src, out, dst, port, *_ in pairs(frames["edges"])]


def pairs(edges):
    return edges[["src", "src_port", "dst", "dst_port"]].values.tolist()


def traced_by_torch(step):
    """Ops of make_fx's graph, and edges between them by their numbers; getitem is a port, no op."""
    graph = make_fx(step)(IDS).graph
    calls = [node for node in graph.nodes if node.op == "call_function" and "getitem" not in str(node.target)]
    number = {node: index for index, node in enumerate(calls)}
    edges = []
    for call in calls:
        for port, read in enumerate(_flat(call)):
            src, out = (read.args[0], read.args[1]) if "getitem" in str(read.target) else (read, 0)
            edges.append((number.get(src), out, number[call], port))
    return [str(call.target) for call in calls], edges


def _flat(call):
    found = []
    torch.fx.map_arg((call.args, call.kwargs), found.append)
    return found


@pytest.mark.parametrize("model", [Llama(LLAMA_TINY), RWKV4(replace(RWKV4_TINY, head_qk=0))])
def test_ops_and_edges_of_forward_and_backward_are_those_that_make_fx_finds(model, monkeypatch):
    # make_fx is a dispatch mode, under which torch runs some ops otherwise: so must the recorder be.
    monkeypatch.setenv("NBKIT_RECORDER", "python")

    def step(ids):
        return torch.autograd.grad(model(ids, ids), list(model.parameters()))

    ops, edges = traced_by_torch(step)
    frames = graph_of(lambda: step(IDS))
    nodes = frames["nodes"]
    calls = nodes.index[(nodes["kind"] == "op") & (nodes["op"] != "aten.promote_types.default")]
    assert nodes["op"][calls].tolist() == ops
    number = dict(zip(calls, range(len(calls)), strict=True))
    assert [(number.get(src), out, number[dst], port) for src, out, dst, port in pairs(frames["edges"])] == edges


def test_parameters_come_first_and_are_read_by_their_names():
    model = Llama(LLAMA_TINY)
    frames = graph_of(lambda: model(IDS))
    nodes = frames["nodes"]
    parameters = nodes[nodes["kind"] == "parameter"]
    assert set(parameters["name"]) == {name for name, _ in model.named_parameters()}
    assert (parameters["module"] == parameters["name"].str.rpartition(".")[0]).all()
    assert nodes["kind"].tolist()[: len(parameters) + 1].count("op") == 0
    (reader,) = frames["edges"].loc[frames["edges"]["tensor"] == "lm_head.weight", "dst"]
    assert nodes.loc[reader, ["op", "module"]].tolist() == ["aten.t.default", "lm_head"]


def test_a_reader_is_linked_to_the_last_write_through_any_view():
    def step():
        buffer = torch.zeros(4)
        view = buffer.view(2, 2)
        buffer.add_(1)
        view[0].mul_(2)
        view.exp()

    assert [edge[::2] for edge in edges_of(graph_of(step))] == [
        ("zeros", "view"),
        ("zeros", "add_"),
        ("add_", "select"),
        ("select", "mul_"),
        ("mul_", "exp"),
    ]


def test_ports_are_the_places_among_results_and_arguments():
    def step():
        first, second = torch.ones(4).chunk(2)
        torch.cat([second, first])

    assert edges_of(graph_of(step))[1:] == [("split", 1, "cat", 0), ("split", 0, "cat", 1)]


def test_what_is_given_made_and_kept_is_told_apart():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    model[0].bias.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    x = torch.randn(4, 3)

    def step():
        (model(x).sum() + torch.tensor(1.0)).backward()
        optimizer.step()

    step()
    frames = graph_of(step)
    nodes = frames["nodes"].drop_duplicates("name").set_index("name")
    assert nodes.loc[["0.weight", "0.bias"], "kind"].tolist() == ["parameter"] * 2
    assert nodes.loc[["1.running_mean", "1.num_batches_tracked"], "kind"].tolist() == ["buffer"] * 2
    unnamed = frames["nodes"][frames["nodes"]["name"].str.startswith("%")]
    # The batch and the constant.
    assert unnamed.groupby("kind").size().to_dict() == {"constant": 1, "input": 1}
    # Of no module: gradients and momentum of three parameters each.
    state = nodes.index[(nodes["kind"] == "buffer") & nodes["module"].isna()]
    trained = ("0.weight", "1.weight", "1.bias")
    assert sorted(state) == sorted(f"{name}.{key}" for name in trained for key in ("grad", "momentum_buffer"))


def test_phases_tell_what_checkpointing_runs_again():
    part = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    frames = graph_of(
        lambda: checkpoint(part, torch.ones(2, 3, requires_grad=True), use_reentrant=False).sum().backward()
    )
    nodes = frames["nodes"]
    tanh = nodes[nodes["op"].isin(["aten.tanh.default", "aten.tanh_backward.default"])]
    assert tanh["phase"].tolist() == ["forward", "recompute", "backward"]


def test_a_node_says_its_op_its_api_call_and_its_repeats():
    layer = nn.Linear(2, 2)
    with nbkit.optrace() as trace:
        layer(layer(torch.ones(1, 2)))
    nodes = trace_graph(trace.ops, trace.tensors, trace.modules)["nodes"]
    calls = nodes[nodes["op"] == "aten.addmm.default"]
    assert calls["name"].tolist() == ["addmm", "addmm_1"]
    assert trace.ops.loc[calls["op_id"], "op"].tolist() == ["aten.addmm.default"] * 2
    api = {"api": "torch.nn.functional.linear", "arguments": {"beta": 1, "alpha": 1}}
    assert [json.loads(text) for text in calls["attributes"]] == [api, {**api, "module_call": 1}]


def test_tensors_count_their_reads_and_writes():
    frames = graph_of(lambda: (lambda x: x.add_(x))(torch.ones(2)).exp())
    tensors = frames["graph_tensors"]
    assert tensors[["tensor", "kind", "reads", "writes"]].values.tolist() == [
        ["%0", "temporary", 3, 2],
        ["%1", "temporary", 0, 1],
    ]


def test_a_trace_without_tensors_has_nodes_alone():
    with nbkit.optrace() as trace:
        torch.ones(2).exp()
    frames = trace_graph(trace.ops, trace.tensors.iloc[:0], trace.modules)
    assert (len(frames["nodes"]), len(frames["edges"]), len(frames["graph_tensors"])) == (2, 0, 0)


def test_a_node_has_the_arguments_of_its_op():
    nodes = graph_of(lambda: torch.softmax(torch.ones(2, 3), dim=1).sum())["nodes"].set_index("op")
    attributes = json.loads(nodes["attributes"]["aten._softmax.default"])
    assert attributes["arguments"] == {"dim": 1, "half_to_float": False}
    assert "arguments" not in json.loads(nodes["attributes"]["aten.sum.default"])


def test_arguments_that_are_not_the_same_are_told_where_graphs_are_compared():
    def step(dim):
        return graph_of(lambda: torch.softmax(torch.ones(3, 3), dim=dim).sum())

    found = compare_graphs(step(0), step(1)).set_index("left_op")
    assert found["message"]["aten._softmax.default"] == "dim is 0 on the left, 1 on the right"
    assert found["message"].drop("aten._softmax.default").isna().all()


def test_parameters_of_a_model_that_the_step_made_are_parameters():
    with nbkit.opcost() as counted:
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2, bias=False))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.zeros(2, 4)).sum().backward()
        optimizer.step()
        model(torch.zeros(2, 4))
    nodes, edges = nbkit.opgraph(counted).nodes, nbkit.opgraph(counted).edges
    held = nodes[nodes["kind"] == "parameter"]
    assert held["name"].tolist() == ["0.weight", "0.bias", "2.weight"]
    assert held["shape"].tolist() == ["[8, 4]", "[8]", "[2, 8]"]
    products = nodes.index[nodes["op"].isin(["aten.t.default", "aten.addmm.default"]) & (nodes["phase"] == "forward")]
    readers = edges[edges["dst"].isin(products)].merge(nodes, left_on="src", right_on="node_id")
    assert (readers["kind"] == "parameter").any()
    # What the optimizer has written is read from there by the second forward.
    written = nodes.index[nodes["op"].str.contains("_foreach_add_|aten.add_", na=False)]
    assert edges["src"].isin(written).any()


def test_a_model_made_inside_of_opcost_is_paired_with_one_from_outside():
    def model():
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    with nbkit.opcost() as counted:
        first = model()  # names are those of models that still live at the end
        first(torch.zeros(2, 4))
    with nbkit.optrace() as recorded:
        second = model()
        second(torch.zeros(2, 4))
    for step in (counted, recorded):
        rows = nbkit.opgraph(step, against=nbkit.opgraph(model())).correspondence.query("level == 'parameter'")
        assert rows["action"].tolist() == ["match"] * 4
