"""Tests damaged and odd files: whole records are kept, the others reported, and nothing is raised but TraceError."""

import gzip
import re

import pytest

from nbkit.errors import TraceError
from nbkit.readers.paddle import read_paddle_program
from tests.readers.paddle import texts
from tests.readers.paddle.facts import operations

RECORD = re.compile(r"  ops \{\n.*?\n  \}\n", re.DOTALL)
CUTS = 15


@pytest.mark.parametrize("form", ["WHILE", "MODERN", "VERSION_1_8", "VERSION_2018", "PIR", "PIR_2_6"])
def test_a_program_cut_anywhere_keeps_its_whole_records(read, form):
    text = getattr(texts, form)
    whole = [row["line"] for row in operations(read(text))]
    for end in range(3, len(text) - 2, len(text) // CUTS):
        trace = read(text[:end])
        kept = {row["line"] for row in operations(trace) if "damaged" not in row["attributes"]}
        assert kept >= {line for line in whole if line <= text[:end].count("\n")}
        assert not trace.complete


def test_protobuf_text_cut_anywhere_keeps_its_whole_records(read):
    ends = [match.end() for match in RECORD.finditer(texts.PROTOBUF)]
    for end in range(3, texts.PROTOBUF.index("}\nversion"), len(texts.PROTOBUF) // CUTS):
        trace = read(texts.PROTOBUF[:end])
        kept = [row for row in operations(trace) if "damaged" not in row["attributes"]]
        assert len(kept) == sum(place <= end for place in ends)
        assert not trace.complete


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: gzip.compress(text.encode()),
        lambda text: text.removesuffix("\n").encode(),
    ],
)
@pytest.mark.parametrize("form", ["WHILE", "PROTOBUF", "PIR"])
def test_encodings_and_line_ends(read, form, encode):
    expected, trace = read(getattr(texts, form)), read(encode(getattr(texts, form)))
    for name, frame in expected.frames.items():
        assert trace.frames[name].equals(frame), name
    assert trace.meta == expected.meta


def test_foreign_bytes_are_counted(read):
    trace = read(texts.MODERN.encode().replace(b"var x", "var x中".encode("gbk")) + "结束\n".encode("gbk"))
    assert trace.graph_tensors["tensor"][0] == "x\ufffd\ufffd"
    assert trace.meta["notes"] == [
        "6 bytes are not of the file's encoding; they are shown as U+FFFD.",
        "1 tensor is read that nothing in the file makes, the first 'x': parts of the file may be lost.",
    ]


@pytest.mark.parametrize("content", [b"", b"\x00\xff\x17" * 1000, b"hello\n" * 300, b"{\n}\n" * 10, b"var x\n"])
def test_other_files_have_no_rows(read, content):
    trace = read(content)
    assert [len(frame) for frame in trace.frames.values()] == [0, 0, 0]
    assert (trace.meta["source"], trace.complete) == ("Paddle program: none found", False)


def test_junk_inside_a_record_damages_that_one(read):
    trace = read(texts.MODERN.replace("inputs={X=['y']}", "inputs={X=\x01\x02['y']}"))
    damaged = [row["op"] for row in operations(trace) if "damaged" in row["attributes"]]
    assert (len(operations(trace)), damaged) == (4, ["mean"])
    assert [(row["line"], row["reason"]) for row in trace.meta["skipped_lines"]] == [(10, "its inputs cannot be read")]


def test_a_cut_record_costs_no_other(read):
    text = texts.MODERN.replace("x_num_col_dims = 1)\n", "x_nu\nsome other line\n")
    trace = read(text)
    assert [row["op"] for row in operations(trace)] == ["mul", "mean", "mul_grad", "sgd"]
    reasons = [(row["line"], row["reason"]) for row in trace.meta["skipped_lines"]]
    assert reasons == [(9, "its record is cut"), (10, "is no record of a program")]


@pytest.mark.parametrize(
    "name", ["</script>", "__import__('os').system('false')", "a\x00b", "\u202e", "%s{0}", "../../x", "="]
)
def test_hostile_names_are_text(read, tmp_path, name):
    literal = repr(name)
    declaration, operation = (
        f"var {name} : LOD_TENSOR.shape(1,).dtype(float32)",
        f"{{Out=[{literal}]}} = f(inputs={{}}, )",
    )
    trace = read(f"{{ // block 0\n    {declaration}\n    {operation}\n}}\n")
    assert trace.graph_tensors["tensor"].tolist() == [name]
    assert trace.graph_tensors["writes"].tolist() == [1]
    trace.save(tmp_path / "saved")


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(TraceError, match=r"Cannot read .*absent"):
        read_paddle_program(tmp_path / "absent")


def test_damaged_gzip_data_end_the_text(read):
    data = gzip.compress(texts.MODERN.encode() * 50)
    trace = read(data[: len(data) - 20])
    assert len(trace.nodes) > 7
    assert not trace.complete
    assert trace.meta["notes"][-1].startswith("The file is not whole: its gzip data")
