"""Tests rows of a block: the last writer, other blocks, sizes, sources."""

import json

import pandas as pd
import pytest

from tests.readers.paddle.facts import attributes, edges, operations, tensors
from tests.readers.paddle.texts import MODERN, WHILE


def variables(*lines):
    return "{ // block 0\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def test_a_reader_is_linked_to_the_last_writer_before_it(read):
    found = edges(read(WHILE))
    assert [edge for edge in found if edge[1] == "h"] == [
        ("h", "h", "slice", "Input"),
        ("h", "h", "run_program", "X"),
        ("h", "h", "less_than", "X"),
    ]
    trace = read(WHILE)
    ops = trace.nodes["op"]
    makers = [ops[src] for src in trace.edges.loc[trace.edges["tensor"] == "h", "src"]]
    assert makers == ["while", "slice", "tanh"]


def test_placeholders_keep_their_port_and_are_no_tensors(read):
    trace = read(WHILE)
    assert "@EMPTY@" not in {*trace.edges["tensor"], *trace.graph_tensors["tensor"], *trace.nodes["name"]}
    assert attributes(trace, "while_grad")["inputs"]["X"] == ["x", "@EMPTY@"]
    text = WHILE.replace("X=['x', '@EMPTY@']", "X=['@EMPTY@', 'x']")
    trace = read(text)
    (node,) = trace.nodes.loc[trace.nodes["op"] == "while_grad", "node_id"]
    assert trace.edges.loc[trace.edges["dst"] == node, "dst_port"].tolist() == [0, 2]


def test_attributes_that_are_variables_are_read(read):
    trace = read(WHILE)
    found = [(tensor, slot) for _, tensor, op, slot in edges(trace) if op == "slice"]
    assert found == [("h", "Input"), ("cond_0", "ends"), ("x", "ends"), ("cond_0", "starts")]
    (node,) = trace.nodes.loc[trace.nodes["op"] == "slice", "node_id"]
    assert trace.edges.loc[trace.edges["dst"] == node, "dst_port"].tolist() == [0, 1, 2, 3]


def test_what_a_block_takes_from_the_one_around_it_is_its_input(read):
    trace = read(WHILE)
    rows = trace.nodes[(trace.nodes["graph"] == "block 1") & (trace.nodes["kind"] == "input")]
    assert rows["name"].tolist() == ["x", "fc.w_0"]
    assert rows["shape"].tolist() == ["[null, 8]", "[8, 8]"]
    assert [json.loads(text) for text in rows["attributes"]] == [
        {"variable_of": "block 0", "persistable": False},
        {"variable_of": "block 0", "persistable": True},
    ]
    assert trace.graph_tensors.groupby("graph").size().to_dict() == {"block 0": 9, "block 1": 1, "block 2": 1}


def test_state_and_kinds_of_variables(read):
    found = tensors(read(WHILE))
    kinds = {name: found[name]["kind"] for name in ("fc.w_0", "fc.b_0", "table", "x", "t", "scopes")}
    assert kinds == {
        "fc.w_0": "parameter",
        "fc.b_0": "parameter",
        "table": "buffer",
        "x": "input",
        "t": "temporary",
        "scopes": "temporary",
    }
    assert (found["fc.b_0"]["attributes"]["trainable"], found["fc.w_0"]["attributes"]["trainable"]) == (False, True)
    assert [found[name]["attributes"]["type"] for name in ("table", "scopes", "list_0")] == [
        "SELECTED_ROWS",
        "STEP_SCOPES",
        "LOD_TENSOR_ARRAY",
    ]
    assert found["fc.w_0"]["attributes"]["dist_attr"]["tensors"][0]["dims_mapping"] == [-1, 0]


@pytest.mark.parametrize(
    ("declared", "numel", "size_bytes", "shape"),
    [
        ("LOD_TENSOR.shape(0, -1, 8).dtype(float16)", 0, 0, "[0, null, 8]"),
        ("LOD_TENSOR.shape(-1, 8).dtype(float16)", None, None, "[null, 8]"),
        ("LOD_TENSOR.shape(2, 3).dtype(bfloat16)", 6, 12, "[2, 3]"),
        ("LOD_TENSOR.shape().dtype(bool)", 1, 1, "[]"),
        ("LOD_TENSOR.shape(2,).dtype(mystery)", 2, None, "[2]"),
        ("LOD_TENSOR.shape(999999999999, 999999999999).dtype(int8)", None, None, "[999999999999, 999999999999]"),
        ("RAW)", None, None, None),
    ],
)
def test_sizes(read, declared, numel, size_bytes, shape):
    row = read(variables(f"var x : {declared}")).graph_tensors.loc[0, ["numel", "size_bytes", "shape"]]
    assert [None if pd.isna(found) else found for found in row] == [numel, size_bytes, shape]


def test_the_source_is_the_users_line(read):
    rows = {row["op"]: row["source"] for row in operations(read(WHILE), "block 0")}
    assert rows["less_than"] == "model/train.py:12"
    own = "'  File \"model/train.py\", line 12, in step', '    while less(x, y):', "
    rows = {row["op"]: row["source"] for row in operations(read(WHILE.replace(own, "")), "block 0")}
    assert rows["less_than"] == "/usr/lib/site-packages/paddle/layers.py:99"


def test_feeds_and_fetches_are_inputs_and_outputs(read):
    lines = [
        "persist var feed : FEED_MINIBATCH)",
        "var x : LOD_TENSOR.shape(1,).dtype(float32)",
        "{Out=['x']} = feed(inputs={X=['feed']}, col = 0, op_device = gpu:0)",
        "{Out=['fetch']} = fetch(inputs={X=['x']}, col = 0)",
    ]
    trace = read(variables(*lines))
    rows = trace.nodes.iloc[1:]
    assert rows[["kind", "name"]].values.tolist() == [["input", "x"], ["output", "fetch"]]
    assert (rows["op"].isna().all(), rows["device"].tolist()[0]) == (True, "gpu:0")
    assert [json.loads(text)["type"] for text in rows["attributes"]] == ["feed", "fetch"]
    assert tensors(trace)["x"]["kind"] == "input"


def test_names_of_our_own_hide_no_attribute(read):
    found = attributes(read(MODERN.replace("op_role = 256", "inputs = 3, op_role = 256")), "mean")
    assert (found["inputs"], found["inputs (attribute)"]) == ({"X": ["y"]}, 3)


def test_a_block_that_holds_itself_is_read(read):
    trace = read(
        WHILE.replace("block_idx:1  parent_idx:0", "block_idx:1  parent_idx:2").replace("parent_idx:0", "parent_idx:1")
    )
    assert len(operations(trace)) == 10
