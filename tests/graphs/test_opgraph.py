"""opgraph takes whatever has a graph, and compares any two of them."""

import pandas as pd
import pytest
import torch

import nbkit
from nbkit import OptionError, SchemaError, Trace, TraceError
from nbkit.graphs.rows import GraphRows
from nbkit.views.statements.graph import graph_statements
from tests.readers.onnx_files import SCOPED, written
from tests.support.fakes import small_trace
from tests.support.graph_texts import ONEFLOW, PADDLE, Net


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.log").write_text(ONEFLOW)
    (tmp_path / "net.txt").write_text(PADDLE)


def recorded() -> Trace:
    model, x = Net(), torch.ones(2, 4)
    with nbkit.optrace() as trace:
        model(x)
    return trace


def matched(found: Trace, level: str) -> list[tuple]:
    rows = found.correspondence.query(f"level == '{level}' and action == 'match'")
    return list(rows[["left_name", "right_name", "relation"]].itertuples(index=False, name=None))


def test_a_module_has_its_tree():
    trace = nbkit.opgraph(Net(), name="mine")
    assert (trace.meta["verb"], trace.meta["name"], trace.complete) == ("opgraph", "mine", True)
    assert trace.nodes["name"].tolist() == ["", "up", "up.weight"]
    assert trace.parts["module"].tolist() == ["", "up"]


def test_a_program_has_its_ops_below_the_modules_they_ran_in():
    program = torch.export.export(Net(), (torch.ones(2, 4),))
    for source, kind in ((program, "torch.export program"), (program.graph_module, "FX graph")):
        trace = nbkit.opgraph(source)
        assert (trace.meta["name"], trace.meta["source"]) == ("Net", kind)
        ops = trace.nodes.dropna(subset=["op"])
        assert ops[["graph", "op", "module"]].values.tolist() == [
            ["export", "aten.linear.default", "up"],
            ["export", "aten.relu.default", ""],
        ]
        assert trace.parts["module"].tolist() == ["", "up"]


def test_an_onnx_model_is_known_by_its_content(tmp_path):
    path = written(SCOPED, tmp_path, ("/up/MatMul",)).rename(tmp_path / "net.txt")
    trace = nbkit.load(path)
    assert (trace.meta["verb"], trace.meta["name"]) == ("opgraph", "net.txt")
    assert trace.parts["module"].tolist() == ["up"]
    (tmp_path / "cut.onnx").write_bytes(b"")
    with pytest.raises(TraceError, match=r"cut\.onnx has no ONNX graph, or it is cut off"):
        nbkit.opgraph(tmp_path / "cut.onnx")


def test_a_recorded_step_keeps_its_frames():
    step = recorded()
    trace = nbkit.opgraph(step)
    assert trace.nodes["graph"].unique().tolist() == ["trace"]
    assert set(step.frames) < set(trace.frames)
    assert "nodes" not in step.frames and step.meta["verb"] == "optrace"


def test_what_has_a_graph_is_used_as_it_is(texts):
    trace = nbkit.load("net.log")
    assert all(nbkit.opgraph(trace).frames[name] is frame for name, frame in trace.frames.items())
    assert nbkit.opgraph("net.log").nodes.equals(trace.nodes)


def test_a_step_against_a_log(texts):
    found = nbkit.opgraph(recorded(), against="net.log")
    assert matched(found, "parameter") == [("up.weight", "net.up.weight", "same")]
    ops = found.correspondence.query("level == 'op' and action == 'match'")
    assert ops["right_op"].tolist() == ["broadcast_matmul", "relu"]
    assert found.meta["left"]["compared"] == ["trace"]
    assert found.meta["right"] == {
        "name": "net.log", "source": "OneFlow nn.Graph log", "created": None, "versions": None, "complete": True,
        "compared": ["net_0 compiled"], "graphs": ["net_0 compiled"],
    }  # fmt: skip


def test_a_log_against_a_program(texts):
    found = nbkit.opgraph("net.log", against="net.txt")
    assert matched(found, "parameter") == [("net.up.weight", "fc.w_0", "permute")]
    assert found.meta["name"] == "net.log against net.txt"


def test_two_graphs_of_one_source_are_called_by_their_graphs(texts):
    source = nbkit.opgraph("net.log", against="net.txt")
    graphs = source.nodes["graph"].unique()
    source = Trace(source.frames, source.meta | {"notes": ["cut"]})
    found = nbkit.opgraph(source, graph=graphs[0], against=nbkit.opgraph(source, graph=graphs[1]))
    name = source.meta["name"]
    assert [found.meta[side]["name"] for side in ("left", "right")] == [f"{name}, {graph}" for graph in graphs]
    assert found.meta["notes"] == [f"{name}: cut"]


def test_the_report_says_how_much_corresponds(texts):
    said = {one.question: one.sentences for one in graph_statements(nbkit.opgraph("net.log", against="net.txt"))}
    assert ("Parameters: 1 on both sides (permute 1), 0 left only, 0 right only.",) in said["What corresponds"]


def test_ids_are_those_of_the_frames_of_both(texts):
    found = nbkit.opgraph("net.log", against="net.txt")
    nodes, rows = found.nodes.set_index("node_id"), found.correspondence.query("level != 'part'")
    for side in ("left", "right"):
        known = rows[rows[f"{side}_id"].notna()]
        assert nodes.loc[known[f"{side}_id"].astype(int), "name"].tolist() == known[f"{side}_name"].tolist()
    assert found.nodes["node_id"].tolist() == list(range(len(found.nodes)))
    assert found.edges["dst"].max() < len(found.nodes)


def test_graphs_of_one_name_are_told_apart():
    found = nbkit.opgraph(Net(), against=Net())
    assert found.nodes["graph"].unique().tolist() == ["module tree (left)", "module tree (right)"]
    assert found.parts["graph"].unique().tolist() == ["module tree (left)", "module tree (right)"]
    assert set(found.correspondence["action"]) == {"match"}


def test_one_graph_of_several(texts):
    both = nbkit.opgraph("net.log", against="net.txt")
    one = nbkit.opgraph(both, graph="block 0")
    alone = nbkit.load("net.txt")
    for name in ("nodes", "edges", "graph_tensors", "parts"):
        pd.testing.assert_frame_equal(one.frames[name], alone.frames[name])


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (3, {}, "There is no graph of the type int; give a torch.nn.Module"),
        (Net, {}, r"Net is a class; give a model, such as Net\(...\)\."),
        (Trace({}, {}), {}, "This trace has no graph: it has neither nodes nor ops"),
        (Net(), {"graph": "tree"}, "There is no graph 'tree' in 'Net'; did you mean 'module tree'"),
        (Net(), {"against": None, "graph": "x"}, "There is no graph 'x' in 'Net'; known are module tree."),
        (Net(), {"against": 3}, "There is no graph of the type int"),
    ],
)
def test_what_has_no_graph_is_named(source, options, message):
    with pytest.raises(OptionError, match=message):
        nbkit.opgraph(source, **options)


@pytest.mark.parametrize("content", [b"", b"\x00\x01\xff" * 400, b"hello\n" * 30_000])
def test_a_file_that_is_no_graph_is_one_sentence(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(TraceError, match="is empty; |is not a trace: .* a OneFlow nn.Graph log, a Paddle program"):
        nbkit.opgraph(tmp_path / "file")


def test_a_step_without_tensors_has_ops_alone():
    step = small_trace()
    trace = nbkit.opgraph(Trace({"ops": step.ops}, step.meta))
    assert trace.nodes["op"].tolist() == step.ops.query("level == 'aten'")["op"].tolist()
    assert (len(trace.edges), trace.meta["notes"][-1]) == (0, "no tensors were recorded, so the graph has no edges")


def test_a_tree_of_modules_is_compared_by_parts_and_parameters_and_that_is_said(texts):
    found = nbkit.opgraph("net.log", against=Net())
    assert found.correspondence["level"].unique().tolist() == ["part", "parameter"]
    assert found.meta["notes"][-1] == "Net: it has no ops, so only parts and parameters are compared"


def test_a_row_of_a_graph_has_the_columns_of_its_frame_alone():
    rows = GraphRows()
    assert rows.node("g", "op", "a", module="layers") == 0
    with pytest.raises(SchemaError, match="nodes has no column 'layer'; its columns are node_id"):
        rows.node("g", "op", "b", layer="layers")
