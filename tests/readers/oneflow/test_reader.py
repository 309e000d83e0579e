"""Tests a whole small log: what each frame holds."""

import json

import pytest

from nbkit.readers.oneflow.reader import looks_like
from tests.readers.oneflow import logs
from tests.readers.oneflow.frames import attributes, nodes_of


@pytest.fixture
def trace(tmp_path):
    return logs.read(tmp_path, logs.text(logs.records()))


def test_traced_nodes(trace):
    columns = ["kind", "op", "name", "module", "phase", "shape", "source"]
    rows = nodes_of(trace, "Net_0 traced")[columns].astype(object).where(lambda of: of.notna(), None)
    assert rows.to_numpy().tolist() == [
        ["input", None, "_Net_0_input.0.0_x", "", None, "[8, 4]", None],
        ["parameter", None, "model.fc.weight", "model.fc", None, "[2, 4]", None],
        ["op", "matmul", "model.fc-matmul-0", "model.fc", "forward", "[8, 2]", "/me/net.py:12"],
        ["op", "reduce_sum", "reduce_sum-1", "", "forward", "[]", None],
        ["op", "ones_like", "ones_like-2", "", "backward", "[]", None],
        ["op", "add_n", "model.fc-add_n-3", "model.fc", "backward", "[2, 4]", None],
        ["output", None, "_Net_0_output.0.0_loss", "", None, "[1]", None],
    ]


def test_compiled_nodes(trace):
    rows = nodes_of(trace, "Net_0 compiled")[["kind", "name", "phase", "inserted", "dtype", "device"]]
    found = rows[rows["name"].str.startswith("model.fc.weight")].astype(object).where(lambda of: of.notna(), None)
    assert found.to_numpy().tolist() == [
        ["parameter", "model.fc.weight", None, None, "float32", "cuda [0, 1]"],
        ["op", "model.fc.weight-out-cast_f2h", "forward", "amp", "float16", "cuda [0, 1]"],
        ["buffer", "model.fc.weight-m", "optimizer", "optimizer", "float32", "cuda [0, 1]"],
        ["op", "model.fc.weight_optimizer", "optimizer", "optimizer", None, "cuda [0, 1]"],
    ]


def test_edges_follow_the_order_of_the_call(trace):
    name = trace.nodes.set_index("node_id")["name"]
    rows = [(name.get(row.src), name[row.dst], row.dst_port, row.slot, row.tensor) for row in trace.edges.itertuples()]
    assert rows[:2] == [
        ("model.fc.weight", "model.fc-matmul-0", 0, "b", "model.fc.weight/out"),
        ("_Net_0_input.0.0_x", "model.fc-matmul-0", 1, "a", "_Net_0_input.0.0_x/out"),
    ]
    assert [row[1:3] for row in rows if row[0] is None] == [("model.fc.weight_optimizer", 2)]


def test_tensors_count_bytes_and_uses(trace):
    tensors = trace.graph_tensors[trace.graph_tensors["graph"] == "Net_0 compiled"].set_index("tensor")
    product = tensors.loc["model.fc-matmul-0/out_0", ["kind", "dtype", "numel", "size_bytes", "reads", "writes"]]
    assert product.tolist() == ["temporary", "float16", 16, 32, 2, 1]
    assert tensors.loc["model.fc.weight-m/out", "kind"] == "buffer"


def test_attributes_keep_their_kinds(trace):
    found = dict(zip(trace.nodes["name"], attributes(trace.nodes), strict=True))
    assert found["model.fc-matmul-0"]["attr"] == {"alpha": {"at_double": 0.5}, "transpose_b": {"at_bool": True}}
    assert found["model.fc-matmul-0"]["input_sbp"] == [["B"], ["B"]]
    assert found["model.fc-add_n-3"]["lists"] == [[0, 1]]
    assert found["_Net_0_input.0.0_x"]["scope_symbol_id"] == 5
    traced = trace.nodes[trace.nodes["graph"] == "Net_0 traced"]
    lies = {name: held.get("sbp") for name, held in zip(traced["name"], attributes(traced), strict=True)}
    assert (lies["_Net_0_input.0.0_x"], lies["model.fc.weight"], lies["reduce_sum-1"]) == (["S(0)"], ["B"], None)


def test_modules_and_meta(trace):
    assert trace.modules[["module", "type", "calls", "params"]].to_numpy().tolist() == [
        ["model", "MLP", 1, 8],
        ["model.fc", "Linear", 1, 8],
    ]
    assert (trace.meta["verb"], trace.complete, trace.meta["skipped_lines"]) == ("opgraph", True, [])
    assert json.loads(json.dumps(trace.meta)) == trace.meta
    about = trace.meta["oneflow"]
    assert (about["passes"][0]["seconds"], about["sets"][0]["names"]) == (
        0.25,
        ["model.fc-matmul-0", "model.fc-add_n-3"],
    )
    assert about["compile_seconds"] == {"Net_0": 0.5}
    outside = {"traced": [], "compiled": ["System-Train-LearningRate-Scheduler_6/out"]}
    assert about["graphs"][0]["from_outside"] == outside
    assert about["memory"][0]["eager_variables_mb"] == 1


def test_a_variable_that_the_module_tree_calls_a_buffer_is_one(tmp_path):
    buffers = ["(BUFFER:model.fc.never:tensor(...))"]
    first, op, *rest = logs.built()
    text = logs.text([first, op, buffers, *rest]).replace("(PARAMETER:", "(BUFFER:")
    trace = logs.read(tmp_path, text)
    assert trace.nodes.set_index("name")["kind"]["model.fc.weight"] == "buffer"
    assert trace.meta["oneflow"]["graphs"][0]["unused_buffers"] == ["model.fc.never"]


def test_a_buffer_that_no_op_reads_is_a_node(tmp_path):
    """Where attention is fused nothing reads the mask, but the module has it."""
    buffers = ["(BUFFER:model.fc.mask:tensor(..., size=(4, 4), dtype=oneflow.bool))"]
    first, op, *rest = logs.built()
    trace = logs.read(tmp_path, logs.text([first, op, buffers, *rest]))
    (mask,) = trace.nodes[trace.nodes["name"] == "model.fc.mask"].to_dict("records")
    assert [mask[name] for name in ("kind", "module", "shape", "dtype")] == ["buffer", "model.fc", "[4, 4]", "bool"]
    assert mask["node_id"] not in set(trace.edges["src"])


def test_saved_and_loaded_again(trace, tmp_path):
    again = type(trace).load(trace.save(tmp_path / "saved"))
    assert logs.same(trace, again) == {}
    assert again.meta["oneflow"] == trace.meta["oneflow"]


@pytest.mark.parametrize(
    "text",
    ["", "\x00\x01\x02\xff" * 1000, "hello\nworld\n", '{"traceEvents": []}', "{ // block 0\n  a = b(inputs={})\n}"],
)
def test_nothing_that_is_known(tmp_path, text):
    trace = logs.read(tmp_path, text)
    assert not looks_like(text)
    assert [len(frame) for frame in trace.frames.values()] == [0, 0, 0, 0, 0]
    assert trace.meta["oneflow"]["graphs"] == []


def test_recognised():
    assert looks_like(logs.text(logs.records())[:3000])
    assert looks_like("x\n  (OPERATOR: a() -> (out:sbp=(B)))")
    assert looks_like("[1,0]<stdout>:(GRAPH:Net_0:Net) start building graph.")
    assert not looks_like("see (GRAPH) and OPERATOR: nothing")


def test_what_is_written_in_place_and_how_gradients_add_up_is_told_once(tmp_path):
    in_place = logs.glog("Lazy nn.Graph name Net_0 source op name model.fc-add_-4 run with inplace.")
    steps = ["grad acc of 4 steps", logs.glog("grad acc is done")]
    meta = logs.read(tmp_path, logs.text([*logs.records(), [in_place], *([line] for line in steps)])).meta
    told = meta["oneflow"]
    assert (told["in_place"], meta["skipped_lines"]) == (["model.fc-add_-4"], [])
    assert told["gradient_accumulation"] == ["grad acc of 4 steps", "grad acc is done"]
