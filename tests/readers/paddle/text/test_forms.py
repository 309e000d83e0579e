"""Tests the forms of a program's text: the same program in each gives the same graph."""

import pytest

from nbkit.readers.paddle import looks_like
from tests.readers.paddle import texts
from tests.readers.paddle.facts import edges, operations

SAME = ("MODERN", "VERSION_2_0", "VERSION_1_8", "VERSION_2018", "PROTOBUF")


@pytest.mark.parametrize("form", SAME)
def test_operations_are_the_same(read, form):
    rows = operations(read(getattr(texts, form)))
    assert [(row["op"], row["name"], row["phase"], row["attributes"]["op_role"]) for row in rows] == [
        ("mul", "y", "forward", 0),
        ("mean", "loss", "forward", 256),
        ("mul_grad", "w@GRAD", "backward", 1),
        ("sgd", "w", "optimizer", 2),
    ]
    assert rows[0]["attributes"]["x_num_col_dims"] == 1
    assert [(row["dtype"], row["shape"]) for row in rows[:2]] == [("float32", "[null, 10]"), ("float32", "[]")]


@pytest.mark.parametrize("form", SAME)
def test_edges_and_tensors_are_the_same(read, form):
    trace = read(getattr(texts, form))
    assert [edge[:3] for edge in edges(trace)][:4] == [
        ("x", "x", "mul"),
        ("w", "w", "mul"),
        ("y", "y", "mean"),
        ("x", "x", "mul_grad"),
    ]
    frame = trace.graph_tensors[["tensor", "kind", "numel", "writes"]]
    assert frame.fillna(-1).values.tolist() == [
        ["x", "input", -1, 0],
        ["w", "parameter", 130, 1],
        ["lr", "buffer", 1, 0],
        ["y", "temporary", -1, 1],
        ["loss", "temporary", 1, 1],
        ["w@GRAD", "temporary", 130, 1],
    ]


@pytest.mark.parametrize(
    ("form", "source"),
    [
        ("WHILE", "readable (2.1 to 2.6)"),
        ("MODERN", "readable (3.x)"),
        ("VERSION_2_0", "readable (to 2.0)"),
        ("PROTOBUF", "protobuf text"),
        ("PIR", "PIR (3.x)"),
        ("PIR_2_6", "PIR (as of 2.6)"),
        ("PIR_2024", "PIR (as of 2024)"),
    ],
)
def test_the_spelling_is_named(read, form, source):
    trace = read(getattr(texts, form))
    assert (trace.meta["source"], trace.meta["skipped_lines"]) == (f"Paddle program: {source}", [])
    assert trace.complete


@pytest.mark.parametrize("form", [*SAME, "WHILE", "PIR", "PIR_2_6"])
@pytest.mark.parametrize("prefix", ["", "# ", "[1,0]<stdout>:", "INFO 10:00:01 "])
def test_they_are_told_from_their_first_lines(form, prefix):
    head = "".join(prefix + line for line in getattr(texts, form).splitlines(keepends=True)[:5])
    assert looks_like("loading\n" * 50 + head)


@pytest.mark.parametrize(
    "head",
    [
        "",
        "\x00\x01",
        "(GRAPH:G_0:G) start building graph.",
        "ir_version: 7\ngraph {\n  node {\n",
        '{"traceEvents": []}',
        "x = f(y)",
    ],
)
def test_other_texts_are_not_taken_for_one(head):
    assert not looks_like(head)


def test_forms_may_follow_each_other(read):
    trace = read(texts.PROTOBUF + texts.PIR_2_6 + "bye\n" + texts.MODERN)
    rows = trace.meta["paddle"]["blocks"]
    assert [row["operations"] for row in rows] == [4, 5, 2, 1, 1, 4]
    assert rows[-1]["graph"] == "program 3 block 0"
    assert trace.meta["skipped_lines"] == []
