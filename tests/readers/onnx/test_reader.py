"""Tests ONNX models: nodes, edges, shapes and parameters against onnx, onnxruntime and the model that was exported."""

import json

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from nbkit.readers.onnx.metadata import FX_NODE, SIGNATURE
from nbkit.readers.onnx.reader import looks_like, read_onnx_model
from nbkit.readers.reader import Head
from tests.readers.onnx_files import BRANCHES, LOOP, SCOPED, written
from tests.support.graph_models import batch, model, onnx_bytes


@pytest.fixture(scope="module", params=["llama", "rwkv4"])
def exported(request, tmp_path_factory):
    """Returns name of a model, its file and the trace of that."""
    path = tmp_path_factory.mktemp("onnx") / f"{request.param}.onnx"
    path.write_bytes(onnx_bytes(request.param))
    return request.param, path, read_onnx_model(path)


def edge_names(trace, graph):
    """Returns edges of a graph as (maker, port, reader, slot)."""
    nodes, edges = trace.nodes, trace.edges
    edges = edges[nodes["graph"][edges["dst"]].eq(graph).to_numpy()]
    columns = nodes["name"][edges["src"]], edges["src_port"], nodes["name"][edges["dst"]], edges["slot"].fillna("")
    return list(zip(*columns, strict=True))


def test_nodes_and_references_are_those_of_the_file(exported):
    _, path, trace = exported
    graph = onnx.load_model(path).graph
    nodes = trace.nodes
    ops = nodes[nodes["kind"] == "op"]
    assert ops[["op", "name"]].values.tolist() == [[node.op_type, node.name] for node in graph.node]
    maker = {tensor.name: tensor.name for tensor in graph.initializer} | {"ids": "ids"}
    maker |= {name: node.name for node in graph.node for name in node.output}
    reads = [(maker[name], node.name) for node in graph.node for name in node.input if name]
    given = {row["name"]: json.loads(row["attributes"])["initializer"] for _, row in _renamed(nodes).iterrows()}
    found = [(given.get(src, src), dst) for src, _, dst, slot in edge_names(trace, "main_graph") if slot]
    assert found == reads


def _renamed(nodes):
    return nodes[nodes["attributes"].fillna("").str.contains('"initializer"')]


def test_inputs_outputs_and_their_shapes_are_those_that_onnxruntime_runs(exported):
    _, path, trace = exported
    session = onnxruntime.InferenceSession(path)
    for kind, asked in (("input", session.get_inputs()), ("output", session.get_outputs())):
        rows = trace.nodes[trace.nodes["kind"] == kind]
        assert rows[["name", "shape"]].values.tolist() == [[one.name, json.dumps(one.shape)] for one in asked]
    (out,) = session.run(None, {"ids": batch().numpy()})
    assert json.loads(rows["shape"].iloc[0]) == list(out.shape)


def test_shapes_and_dtypes_are_those_that_onnx_infers(exported):
    _, path, trace = exported
    bare = onnx.load_model(path)
    del bare.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(bare, data_prop=True).graph.value_info
    tensors = trace.graph_tensors.set_index("tensor")
    known = [
        value for value in inferred if all(size.HasField("dim_value") for size in value.type.tensor_type.shape.dim)
    ]
    shapes = [json.dumps([size.dim_value for size in value.type.tensor_type.shape.dim]) for value in known]
    assert tensors.loc[[value.name for value in known], "shape"].tolist() == shapes
    assert len(known) > 100


def test_parameters_are_those_of_the_model(exported):
    name, _, trace = exported
    parameters = dict(model(name).named_parameters())
    nodes = trace.nodes[trace.nodes["kind"] == "parameter"]
    absent = trace.meta["onnx"]["absent_parameters"]
    assert set(nodes["name"]) == set(parameters) - set(absent)
    assert all(path.endswith("time_decay") for path in absent)  # exp(time_decay) was computed by the exporter
    for path, shape in zip(nodes["name"], nodes["shape"], strict=True):
        assert sorted(json.loads(shape)) == sorted(parameters[path].shape)
    total = sum(parameter.numel() for path, parameter in parameters.items() if path not in absent)
    assert trace.modules.loc[0, ["module", "params"]].tolist() == ["", total]


def test_module_paths_classes_and_lines_are_those_of_the_model(exported):
    name, _, trace = exported
    types = {path: type(it).__name__ for path, it in model(name).named_modules()}
    modules = trace.modules.dropna(subset=["type"]).set_index("module")["type"]
    assert len(modules) > 10
    assert {path: types[path] for path in modules.index} == modules.to_dict()
    ops = trace.nodes[trace.nodes["op"] == "MatMul"].dropna(subset=["module"])
    assert ops["source"].str.contains("sample_models/").all()
    assert {"aten.linear.default"} <= {json.loads(text)["torch_op"] for text in ops["attributes"]}


def test_a_branch_and_a_function_are_further_graphs(tmp_path):
    trace = read_onnx_model(written(BRANCHES, tmp_path))
    graphs = ["main", "main If then_branch", "main If else_branch", "function own.Scaled"]
    assert trace.nodes["graph"].drop_duplicates().tolist() == graphs
    ops = trace.nodes.dropna(subset=["op"])
    assert ops[["graph", "op"]].values.tolist() == [
        ["main", "MatMul"],
        ["main", "If"],
        ["main", "ReduceSum"],
        ["main If then_branch", "Mul"],
        ["main If else_branch", "own.Scaled"],
        ["function own.Scaled", "Mul"],
    ]
    into = [edge for edge in edge_names(trace, "main") if edge[2] == "y" and edge[3]]
    captured = [("h", 0, "y", "captured"), ("two", 0, "y", "captured"), ("half", 0, "y", "captured")]
    assert into == [("c", 0, "y", "cond"), *captured]
    assert edge_names(trace, graphs[1]) == [("h", 0, "a", "A"), ("two", 0, "a", "B"), ("a", 0, "a", "")]
    inside = trace.nodes[(trace.nodes["graph"] == graphs[1]) & (trace.nodes["kind"] == "input")]
    given = {name: json.loads(text) for name, text in inside[["name", "attributes"]].itertuples(index=False)}
    assert given == {"h": {"captured": True}, "two": {"captured": True}}


def test_graphs_of_one_name_are_numbered_and_lists_of_graphs_too(tmp_path):
    def inner(op):
        return helper.make_graph(
            [helper.make_node(op, ["x"], ["r"])], op, [], [helper.make_empty_tensor_value_info("r")]
        )

    branches = {"then_branch": inner("Abs"), "else_branch": inner("Neg")}
    nodes = [helper.make_node("If", ["c"], [name], **branches) for name in "abc"]
    nodes += [helper.make_node("Cases", ["x"], ["d"], domain="own", cases=[inner("Exp"), inner("Log")])]
    nodes[0].doc_string = "which of two"
    inputs = [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_empty_tensor_value_info("x")]
    graph = helper.make_graph(nodes, "main", inputs, [])
    onnx.save_model(helper.make_model(graph), tmp_path / "model.onnx")
    found = read_onnx_model(tmp_path / "model.onnx").nodes.dropna(subset=["op"])
    assert found.loc[found["graph"] != "main", ["graph", "op"]].values.tolist() == [
        *(
            [f"main If {name}{number}", op]
            for number in ("", "#2", "#3")
            for name, op in (("else_branch", "Neg"), ("then_branch", "Abs"))
        ),
        ["main Cases cases 0", "Exp"],
        ["main Cases cases 1", "Log"],
    ]
    assert json.loads(found["attributes"].iloc[0]) == {"doc_string": "which of two"}


def test_shapes_are_those_of_sparse_tensors_and_of_a_functions_own_values(tmp_path):
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [2.0, 5.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("at", TensorProto.INT64, [2], [0, 5]), [3, 4])
    y = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([helper.make_node("Half", ["w"], ["y"], domain="own")], "main", [], [y])
    graph.sparse_initializer.append(sparse)
    body = [helper.make_node("Neg", ["v"], ["t"]), helper.make_node("Abs", ["t"], ["r"])]
    function = helper.make_function("own", "Half", ["v"], ["r"], body, [helper.make_opsetid("", 20)])
    function.value_info.append(helper.make_tensor_value_info("t", TensorProto.FLOAT16, [3, 4]))
    onnx.save_model(helper.make_model(graph, functions=[function]), tmp_path / "model.onnx")
    trace = read_onnx_model(tmp_path / "model.onnx")
    tensors = trace.graph_tensors.set_index("tensor")
    assert tensors.loc[["w", "t"], ["dtype", "shape"]].values.tolist() == [["float32", "[3, 4]"], ["float16", "[3, 4]"]]
    inside = trace.nodes[trace.nodes["graph"] == "function own.Half"]
    assert inside[["kind", "name"]].values.tolist() == [["input", "v"], ["op", "t"], ["op", "r"], ["output", "r"]]
    assert edge_names(trace, "function own.Half") == [("v", 0, "t", "X"), ("t", 0, "r", "X"), ("r", 0, "r", "")]


def test_a_weight_that_the_exporter_transposed_is_there_and_a_folded_one_is_absent(tmp_path):
    node = helper.make_node("MatMul", ["x", "val_3"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1]) for name in "xy")
    graph = helper.make_graph([node], "main", [x], [y], [helper.make_tensor("val_3", TensorProto.FLOAT, [1, 1], [2.0])])
    signature = "p_fc_weight: PARAMETER target='fc.weight'\np_decay: PARAMETER target='decay'"
    made_of = "target=torch.ops.aten.linear.default](args = (%x, %p_fc_weight"
    helper.set_metadata_props(graph, {SIGNATURE: signature})
    helper.set_metadata_props(graph.node[0], {FX_NODE: made_of})
    onnx.save_model(helper.make_model(graph), tmp_path / "model.onnx")
    trace = read_onnx_model(tmp_path / "model.onnx")
    assert trace.meta["onnx"]["absent_parameters"] == ["decay"]
    assert trace.nodes.loc[trace.nodes["kind"] == "parameter", "name"].tolist() == ["fc.weight"]


def test_symbols_values_and_kinds_are_as_the_file_says(tmp_path):
    nodes = read_onnx_model(written(BRANCHES, tmp_path)).nodes
    main = nodes[(nodes["graph"] == "main") & (nodes["kind"] != "output")].set_index("name")
    assert main.loc["x", ["kind", "dtype", "shape"]].tolist() == ["input", "float32", "[null, 3]"]
    assert json.loads(main.loc["x", "attributes"]) == {"sizes": ["N", "3"]}
    kinds = {"w": "parameter", "half": "constant", "two": "constant", "axes": "constant"}
    assert main.loc[list(kinds), "kind"].to_dict() == kinds
    assert json.loads(main.loc["two", "attributes"])["value"]["value"] == [2.0]
    assert main.loc["axes", ["dtype", "shape"]].tolist() == ["int64", "[1]"]


def test_a_loop_has_its_body_and_its_meta_its_producer(tmp_path):
    trace = read_onnx_model(written(LOOP, tmp_path))
    assert ("step", 0, "w", "B") in edge_names(trace, "count Loop body")
    assert ("step", 0, "last", "captured") in edge_names(trace, "count")
    meta = read_onnx_model(written(BRANCHES, tmp_path)).meta
    assert (meta["verb"], meta["name"], meta["complete"]) == ("opgraph", "model.onnx", True)
    assert meta["onnx"]["opsets"] == {"ai.onnx": 20, "own": 1}
    assert (meta["onnx"]["producer"], meta["onnx"]["metadata"]) == ("by hand", {"who": "me"})
    assert meta["onnx"]["functions"] == ["own.Scaled"]
    json.dumps(meta)


def test_paths_in_the_names_of_an_older_exporter_are_module_paths(tmp_path):
    trace = read_onnx_model(written(SCOPED, tmp_path, ("/model/layers.0/up/MatMul", "/model/layers.0/act/Relu")))
    assert trace.nodes["module"].dropna().tolist() == ["model.layers.0.up", "model.layers.0.act"]
    assert trace.modules["module"].tolist()[:4] == ["", "model", "model.layers", "model.layers.0"]
    assert "infer_shapes_path" in trace.meta["notes"][0]


def test_what_an_onnx_model_begins_with_is_known(tmp_path):
    heads = (onnx_bytes("llama")[:16], written(LOOP, tmp_path).read_bytes()[:16])
    assert all(looks_like(Head(head, head, "m")) for head in heads)
    others = (b"", b"{\n", b"PK\x03\x04", b"\x1f\x8b\x08\x00", b"text")
    assert not any(looks_like(Head(head, head, "m")) for head in others)
