"""Tests PIR text: values, types, regions."""

import json

import pytest

from nbkit.readers.paddle.text.pir_text import split, typed, value
from tests.readers.paddle.facts import attributes, edges, operations, tensors
from tests.readers.paddle.texts import PIR, PIR_2_6, PIR_2024


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tensor<2x-1x8xf32>", ("tensor", (2, -1, 8), "float32")),
        ("tensor<i64>", ("tensor", (), "int64")),
        ("tensor<0xindex>", ("tensor", (0,), "int64")),
        ("pd_op.tensor<1xb>", ("pd_op.tensor", (1,), "bool")),
        ("builtin.tensor<4x8xbf16>", ("builtin.tensor", (4, 8), "bfloat16")),
        (
            "pd_dist.tensor<4x8xf8e4m3fn, mesh_shape:[2],dims_mappings:[-1,-1]>",
            ("pd_dist.tensor", (4, 8), "float8_e4m3fn"),
        ),
        ("vec[tensor<8xf32>,tensor<8xf32>]", ("vec[tensor<8xf32>,tensor<8xf32>]", None, None)),
        ("cf.stack", ("cf.stack", None, None)),
        ("<<NULL TYPE>>", ("<<NULL TYPE>>", None, None)),
    ],
)
def test_types(text, expected):
    variable = typed("%0", text)
    assert (variable.type, variable.shape, variable.dtype) == expected


def test_a_type_of_a_distributed_tensor_says_how_it_lies():
    variable = typed("%0", "pd_dist.tensor<4x8xf32, mesh_shape:[2],dims_mappings:[-1,0],partial:false>")
    layout = {"mesh_shape": [2], "dims_mappings": [-1, 0], "partial": False}
    assert (variable.shape, variable.attributes) == ((4, 8), {"dist_attr": layout})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a, \\"b\\""', 'a, "b"'),
        ("[1,-2]", [1, -2]),
        ("(pd_op.IntArray)[1,2]", [1, 2]),
        ("(Float)0", 0),
        ("(pd_op.DataType)bfloat16", "bfloat16"),
        ("Place(gpu:0)", "Place(gpu:0)"),
        ("<#AttrNull>", "<#AttrNull>"),
        ("true", True),
        ("{mesh:{shape:[2],dim_names:[x]}}", {"mesh": {"shape": [2], "dim_names": ["x"]}}),
    ],
)
def test_values_of_attributes(text, expected):
    assert value(text) == expected


def test_commas_in_brackets_and_strings_part_nothing():
    assert split('a, (b, c), "d, [", {e<f, g>}) rest') == (["a", "(b, c)", '"d, ["', "{e<f, g>}"], 28)


def test_parameters_state_inputs_and_outputs(read):
    trace = read(PIR)
    rows = trace.nodes[trace.nodes["graph"] == "block 0"]
    named = rows.loc[rows["kind"] != "op", ["kind", "name"]].values.tolist()
    assert named == [["parameter", "fc.w_0"], ["input", "x"], ["buffer", "fc.w_0_moment1_0"], ["output", "out"]]
    found = tensors(trace)
    kinds = {name: found[name]["kind"] for name in ("%0", "%1", "%2", "%4", "%14")}
    assert kinds == {"%0": "parameter", "%1": "input", "%2": "buffer", "%4": "temporary", "%14": "output"}
    assert (found["%0"]["size_bytes"], found["%15"]["size_bytes"], found["%0"]["writes"]) == (256, 0, 1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fc.w_0", "parameter"),
        ("fc.w_0_moment1_0", "buffer"),
        ("fc.w_0_beta2_pow_acc_0", "buffer"),
        ("fc.w_0_fp32_master_0", "buffer"),
        ("learning_rate_0", "buffer"),
        ("moment_encoder.w_0", "parameter"),
    ],
)
def test_state_of_the_optimizer_was_a_parameter_to_2_6(read, name, kind):
    assert tensors(read(PIR_2_6.replace("fc.w_0", name)))["%0"]["kind"] == kind
    stated = PIR_2_6.replace('{parameter_name:"fc.w_0"', f'{{is_parameter:[true],parameter_name:"{name}"')
    assert tensors(read(stated))["%0"]["kind"] == "parameter"


@pytest.mark.parametrize("text", [PIR_2_6, PIR_2024])
def test_older_spellings(read, text):
    trace = read(text)
    ops = [(row["graph"], row["op"]) for row in operations(trace)]
    assert ops[:3] == [("block 0", "pd_op.full"), ("block 0", "pd_op.while"), ("block 0", "pd_op.if")]
    assert ops[3:] == [("block 1", "pd_op.matmul"), *((f"block {n}", "cf.yield") for n in (1, 2, 3))]
    assert ("x", "%1", "pd_op.while", "inputs") in edges(trace)
    assert attributes(trace, "pd_op.matmul")["transpose_x"] is False


def test_regions_are_blocks_of_the_operation_that_holds_them(read):
    trace = read(PIR)
    links = [(row["graph"], row["parent"]) for row in trace.meta["paddle"]["blocks"]]
    assert links == [("block 0", -1), ("block 1", 0), ("block 2", 1), ("block 3", 1), ("block 4", 0)]
    assert attributes(trace, "pd_op.while")["regions"] == ["block 1"]
    assert attributes(trace, "pd_op.if")["regions"] == ["block 2", "block 3"]
    assert attributes(trace, "cinn_op.fusion")["regions"] == ["block 4"]
    ops = [row["op"] for row in operations(trace, "block 3")]
    assert ops == ["pd_op.scale", "cf.yield"]


def test_loops_carry_types_to_results_and_arguments(read):
    found = tensors(read(PIR))
    shapes = [(found[name]["shape"], found[name]["dtype"]) for name in ("%6", "%7", "%arg_0", "%arg_1")]
    assert shapes == [("[null, 8]", "float32"), ("[]", "int64")] * 2
    assert found["%arg_0"]["attributes"]["stop_gradient"] is False


def test_values_from_outside_a_region_are_its_inputs(read):
    trace = read(PIR)
    rows = trace.nodes[(trace.nodes["graph"] == "block 4") & (trace.nodes["kind"] == "input")]
    assert rows["name"].tolist() == ["%11", "%3"]
    assert [json.loads(text)["variable_of"] for text in rows["attributes"]] == ["block 0", "block 0"]


def test_absent_values_keep_their_place(read):
    trace = read(PIR.replace("(%8, <<NULL VALUE>>)", "(<<NULL VALUE>>, %8)"))
    (scale,) = [row for row in operations(trace) if row["op"] == "pd_op.scale"]
    rows = trace.edges[trace.edges["dst"] == scale["node_id"]]
    assert (rows["dst_port"].tolist(), rows["tensor"].tolist()) == ([1], ["%8"])
    assert (scale["phase"], scale["attributes"]["scale"]) == ("backward", -1.5)


def test_general_regions_follow_their_operation(read):
    text = PIR_2_6.replace('"pd_op.full" ()', '"pd_op.call" ()').replace(
        "pd_op.tensor<1xb>\n (%3)",
        'pd_op.tensor<1xb>\n {\n  ^kw:%a {}\n  () = "cf.yield" (%1) {} : (x) ->\n }\n (%3)',
        1,
    )
    trace = read(text)
    assert attributes(trace, "pd_op.call")["regions"] == ["block 1"]
    assert [row["op"] for row in operations(trace, "block 1")] == ["cf.yield"]
    assert trace.meta["skipped_lines"] == []


def test_a_general_region_may_follow_another_one(read):
    region = ' {\n  ^kw:%a {}\n  () = "cf.yield" (%1) {} : (x) ->\n }\n'
    text = PIR_2_6.replace('"pd_op.full" ()', '"pd_op.call" ()').replace(
        "pd_op.tensor<1xb>\n (%3)", f"pd_op.tensor<1xb>\n{region}{region} (%3)", 1
    )
    assert attributes(read(text), "pd_op.call")["regions"] == ["block 1", "block 2"]


def test_what_is_cut_is_said(read):
    trace = read(PIR_2_6[: PIR_2_6.index("(Float)0")])
    assert attributes(trace, "pd_op.full")["damaged"] == "its record is cut"
    assert [(row["line"], row["reason"]) for row in trace.meta["skipped_lines"]] == [(4, "its record is cut")]
    assert not trace.complete


def test_more_types_than_results_are_damage(read):
    trace = read(PIR_2_6.replace("() -> pd_op.tensor<1xb>", "() -> pd_op.tensor<1xb>, pd_op.tensor<2xf32>"))
    said = "it has other numbers of results and of types"
    assert attributes(trace, "pd_op.full")["damaged"] == said and tensors(trace)["%2"]["dtype"] != "bool"
    assert [(row["line"], row["reason"]) for row in trace.meta["skipped_lines"]] == [(4, said)]


@pytest.mark.parametrize(("before", "line"), [("", 1), ("a word\n\n", 3)])
def test_a_program_begins_at_its_brace(read, before, line):
    assert read(before + PIR).meta["paddle"]["blocks"][0]["line"] == line


def test_an_operation_without_operands_is_damaged(read):
    trace = read(PIR.replace('"pd_op.matmul" [id:7] (%1, %0) {', '"pd_op.matmul" [id:7] ; (%1, %0) {'))
    found = attributes(trace, "pd_op.matmul")
    assert (found["id"], found["damaged"]) == (7, "its operands cannot be read")
    (skipped,) = trace.meta["skipped_lines"]
    assert skipped["reason"] == "its operands cannot be read"


def test_what_stands_before_an_operation_is_said(read):
    trace = read(PIR.replace("    (%4) = ", "saved at 7    (%4) = "))
    assert operations(trace) == operations(read(PIR))
    reason = "stands before an operation, which was read without it"
    assert trace.meta["skipped_lines"] == [{"line": 6, "text": "saved at 7", "reason": reason}]


@pytest.mark.parametrize("prefix", ["INFO 1: ", "> "])
def test_a_prefix_ends_before_the_blanks_of_a_program_without_its_first_line(read, prefix):
    trace = read("".join(prefix + line for line in PIR.splitlines(keepends=True)[1:]))
    assert (trace.meta["skipped_lines"], trace.complete) == ([], True)
    assert operations(trace) == operations(read(PIR.partition("\n")[2]))
