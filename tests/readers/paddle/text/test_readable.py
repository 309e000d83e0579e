"""Tests readable programs: blocks, what stands between records, records of several lines."""

import json

import pytest

from tests.readers.paddle.facts import attributes, operations
from tests.readers.paddle.texts import MODERN, WHILE

TYPES = ["mul", "mean", "mul_grad", "sgd"]


def types(trace, graph=None):
    return [row["op"] for row in operations(trace, graph)]


def test_blocks_become_graphs_with_their_links(read):
    trace = read(WHILE)
    rows = trace.meta["paddle"]["blocks"]
    assert [(row["graph"], row["parent"], row["forward"], row["backward"], row["line"]) for row in rows] == [
        ("block 0", -1, -1, -1, 1),
        ("block 1", 0, -1, 2, 19),
        ("block 2", 0, 1, -1, 26),
    ]
    assert types(trace, "block 1") == ["mul", "tanh", "less_than"]
    assert attributes(trace, "while")["sub_block"] == "block 1"
    assert attributes(trace, "run_program")["blocks"] == ["block 1", "block 2"]


def test_two_programs_in_a_file_are_two(read):
    trace = read(MODERN + "step 1 done\n" + WHILE)
    graphs = ["block 0", "program 2 block 0", "program 2 block 1", "program 2 block 2"]
    assert [row["graph"] for row in trace.meta["paddle"]["blocks"]] == graphs
    assert trace.nodes["graph"].drop_duplicates().tolist() == graphs
    assert attributes(trace, "while")["sub_block"] == "program 2 block 1"
    assert trace.graph_tensors.groupby("graph").size()["block 0"] == 6
    assert trace.meta["skipped_lines"] == []


def test_a_second_declaration_is_the_same_variable(read):
    line = "    persist var lr : DENSE_TENSOR.shape(1,).dtype(float32).stop_gradient(True)\n"
    trace = read(MODERN.replace(line, line + line))
    assert len(trace.graph_tensors) == 6
    assert trace.nodes["kind"].tolist().count("buffer") == 1


@pytest.mark.parametrize(
    "prefix", ["# ", "    ", "\t", "2026-11-21 10:00:0{n},123 [INFO] worker-{n}: ", "[1,0]<stdout>:", "> "]
)
def test_prefixes_of_lines_are_no_junk(read, prefix):
    text = "".join(prefix.format(n=n % 10) + line for n, line in enumerate(MODERN.splitlines(keepends=True)))
    trace = read("starting\n" + text + "done\n")
    assert types(trace) == TYPES
    assert len(trace.graph_tensors) == 6
    assert (trace.meta["skipped_lines"], trace.complete) == ([], True)


def test_programs_of_two_ranks_line_by_line(read):
    lines = zip(MODERN.splitlines(), MODERN.replace("mean", "sum").splitlines(), strict=True)
    trace = read("".join(f"[1,1]<stdout>:{one}\n[1,0]<stdout>:{zero}\n" for zero, one in lines))
    assert [(row["graph"], row["rank"]) for row in trace.meta["paddle"]["blocks"]] == [
        ("block 0", 0),
        ("program 2 block 0", 1),
    ]
    assert types(trace, "block 0") == TYPES
    assert types(trace, "program 2 block 0") == ["mul", "sum", "mul_grad", "sgd"]


@pytest.mark.parametrize("numbers", [[12] * 999, range(1, 999)], ids=["one number", "numbered lines"])
def test_numbers_in_brackets_that_are_no_ranks_name_none(read, numbers):
    trace = read("".join(f"[{number}] {line}\n" for number, line in zip(numbers, MODERN.splitlines(), strict=False)))
    assert [(row["graph"], row["rank"]) for row in trace.meta["paddle"]["blocks"]] == [("block 0", None)]
    assert (types(trace), trace.meta["skipped_lines"]) == (TYPES, [])


def test_junk_between_records_is_listed_and_costs_none(read):
    lines = MODERN.splitlines(keepends=True)
    trace = read("".join([*lines[:3], "I1121 gpu_info.cc:1] memory\n", *lines[3:10], "\x00\x01\x02\n", *lines[10:]]))
    assert types(trace) == TYPES
    reason = "is no record of a program"
    assert trace.meta["skipped_lines"] == [
        {"line": 4, "text": "I1121 gpu_info.cc:1] memory", "reason": reason},
        {"line": 12, "text": "\x00\x01\x02", "reason": reason},
    ]


@pytest.mark.parametrize("after", range(1, len(MODERN.splitlines()) - 1))
def test_junk_after_any_line_is_listed(read, after):
    lines = MODERN.splitlines(keepends=True)
    trace = read("".join([*lines[:after], "a line of the log\n", *lines[after:]]))
    assert types(trace) == TYPES
    assert [(row["line"], row["text"]) for row in trace.meta["skipped_lines"]] == [(after + 1, "a line of the log")]


def test_junk_before_records_is_listed_and_they_are_read(read):
    trace = read(MODERN.replace("    {Out=['loss']}", "12{Out=['loss']}").replace("    var y", "34 var y"))
    assert types(trace) == TYPES
    assert len(trace.graph_tensors) == 6
    assert [(row["line"], row["text"]) for row in trace.meta["skipped_lines"]] == [(5, "34"), (10, "12")]


def test_text_may_run_over_lines(read):
    text = (
        "    {Out=['m']} = print(inputs={In=['loss']}, message = one,\n\n  two: (, op_role = 0)\n    {Out=['y']} = mul("
    )
    trace = read(MODERN.replace("    {Out=['y']} = mul(", text))
    assert attributes(trace, "print")["message"] == "one,\n\n  two: ("
    assert types(trace) == ["print", *TYPES]


def test_a_program_in_an_attribute_is_its_text(read):
    inner = "".join("      " + line + "\n" for line in MODERN.splitlines())[:-1]
    launch = f"    {{Out=['loss']}} = cinn_launch(inputs={{X=['y']}}, compilation_key = \n{inner}, op_role = 0)\n"
    trace = read(MODERN.replace("    {Y@GRAD", launch + "    {Y@GRAD"))
    assert types(trace) == ["mul", "mean", "cinn_launch", "mul_grad", "sgd"]
    found = attributes(trace, "cinn_launch")
    assert found["compilation_key"] == "\n" + inner
    assert found["op_role"] == 0
    assert len(trace.meta["paddle"]["blocks"]) == 1


def test_operations_alone_are_a_program(read):
    lines = [line for line in MODERN.splitlines(keepends=True) if "(inputs=" in line]
    trace = read("".join(lines))
    assert types(trace) == TYPES
    tensors = trace.graph_tensors
    assert tensors["tensor"].tolist() == ["x", "w", "lr", "y", "loss", "w@GRAD"]
    assert {json.loads(text)["declared"] for text in tensors["attributes"]} == {False}
    assert not trace.complete
    x, weight = (line.strip() for line in MODERN.splitlines() if " var x : " in line or " param w : " in line)
    trace = read("".join([f"{x}\n7 {weight}\n", *lines]))
    assert trace.graph_tensors.set_index("tensor").loc["w", ["kind", "shape"]].tolist() == ["parameter", "[13, 10]"]
    assert [(row["line"], row["text"]) for row in trace.meta["skipped_lines"]] == [(2, "7")]


def test_many_unread_lines_are_counted(read):
    trace = read("{ // block 0\n" + "junk\n" * 1500 + "}\n")
    assert len(trace.meta["skipped_lines"]) == 1000
    assert trace.meta["notes"] == ["1,500 lines could not be read; the first 1,000 are listed."]
