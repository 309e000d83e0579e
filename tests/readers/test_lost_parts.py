"""What damage takes from a graph is told: a line without its first word, a value that nobody makes, unknown fields."""

import pytest
from onnx import TensorProto, helper

import nbkit
from tests.support.graph_texts import ONEFLOW, PADDLE, PIR


def told(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    meta = nbkit.load(path).meta
    return [row["reason"] for row in meta["skipped_lines"]], meta["notes"]


@pytest.mark.parametrize("text", [ONEFLOW, PADDLE, PIR])
def test_of_a_whole_text_nothing_is_said(tmp_path, text):
    assert told(tmp_path / "whole.txt", text) == ([], [])


@pytest.mark.parametrize("word", ["(OPERATOR: net-relu", "(MODULE:net.up", "(GRAPH:"])
def test_lines_of_a_listing_whose_first_word_is_damaged_are_counted(tmp_path, word):
    reasons, _ = told(tmp_path / "a.log", ONEFLOW.replace(word, word.replace(word[2:5], "\\,")))
    assert reasons == ["a line of a graph without the word that says which"]


def test_an_argument_without_its_sizes_is_counted(tmp_path):
    whole = "(net-relu-1/y_0:(sbp=(B), size=("
    assert told(tmp_path / "a.log", ONEFLOW.replace(whole, whole.replace("size", "s"))) == (
        ["arguments or results of an operator are damaged"],
        [],
    )


def test_an_operator_of_a_listing_that_others_read_is_missed(tmp_path):
    lines = [line for line in ONEFLOW.splitlines() if "OPERATOR: net.up.weight-out-cast_f2h(" not in line]
    _, notes = told(tmp_path / "a.log", "\n".join(lines))
    assert notes == [
        "1 tensor is read that nothing in the file makes, the first 'net.up.weight-out-cast_f2h/out_0': "
        "parts of the file may be lost."
    ]


def test_a_value_of_a_paddle_program_that_nobody_makes_is_told(tmp_path):
    lines = [line for line in PIR.splitlines() if "(%1) =" not in line]
    _, (note,) = told(tmp_path / "a.txt", "\n".join(lines))
    assert note.startswith("1 tensor is read that nothing in the file makes, the first '%1'")


@pytest.mark.parametrize(
    ("whole", "damaged", "reason"),
    [
        ("-> tensor<8x16xf32>", "-> t-18x16xf32>", "its types cannot be read"),
        ("-> tensor<8x16xf32>", "-> tensor<8x16xf32(>", "its types cannot be read"),
        ("-> builtin.tensor<4x8xf32>\n", "-> builtin.ten}or<4x8xf32>\n", "its types cannot be read"),
        ("-> tensor<4x16xf32>\n", "-> tensor<4x16xf3,,", "its line has another operation, too"),
        ('() = "builtin.shadow', "}builtin.shadow", "is no operation"),
    ],
)
def test_types_and_operations_of_a_paddle_program_that_cannot_be_read_are_counted(tmp_path, whole, damaged, reason):
    reasons, _ = told(tmp_path / "a.txt", PIR.replace(whole, damaged))
    assert reasons == [reason]


def model(**more):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    nodes = [helper.make_node("Relu", [more.get("reads", "x")], ["y"])]
    made = helper.make_model(helper.make_graph(nodes, "net", ends[:1], ends[1:], value_info=ends[1:]))
    return made.SerializeToString() + more.get("rest", b"")


def test_fields_and_values_that_an_onnx_model_lacks_are_told(tmp_path):
    assert told(tmp_path / "a.onnx", model()) == ([], [])
    _, (note,) = told(tmp_path / "a.onnx", model(reads="gone"))
    assert note.startswith("1 tensor is read that nothing in the file makes, the first 'gone'")
    _, (note,) = told(tmp_path / "a.onnx", model(rest=b"\xf8\x07\x01"))  # field 127, the number 1
    assert note.startswith("3 bytes are of fields that ONNX does not have")


@pytest.mark.parametrize("tag", ["[rank{}] ", "rank {}: ", "[1,{}]<stdout>:", "[{}] "])
def test_ranks_of_a_paddle_program_are_told_apart_by_any_tag(tmp_path, tag):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{tag.format(rank)}{line}\n" for line in PADDLE.splitlines() for rank in (0, 1)))
    assert nbkit.load(path).nodes["graph"].value_counts().to_dict() == {"block 0": 4, "program 2 block 0": 4}
