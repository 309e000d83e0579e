"""Tests protobuf text: messages, types of attributes, blocks, cut and damaged records."""

from tests.readers.paddle.facts import attributes, operations, tensors
from tests.readers.paddle.texts import PROTOBUF

ATTRIBUTES = r"""blocks {
  idx: 0
  parent_idx: -1
  forward_block_idx: -1
  ops {
    inputs {
      parameter: "X"
    }
    outputs {
      parameter: "Out"
      arguments: "a"
      arguments: "\345\261\202 \"b\""
    }
    type: "while"
    attrs { name: "no" }
    attrs {
      name: "sub_block"
      type: BLOCK
      block_idx: 1
    }
    attrs {
      name: "ints"
      type: INTS
      ints: 1
      ints: -1
    }
    attrs {
      name: "starts"
      type: VAR
      var_name: "a"
    }
    attrs {
      name: "ends"
      type: VARS
      vars_name: "a"
      vars_name: "b"
    }
    attrs {
      name: "none"
      type: STRINGS
    }
    attrs {
      name: "text"
      type: STRING
      s: "a: {"
    }
    attrs {
      name: "flag"
      type: BOOLEAN
      b: true
    }
    attrs {
      name: "value"
      type: FLOAT
      f: 1e-05
    }
    is_target: false
  }
}
blocks {
  idx: 1
  parent_idx: 0
}
"""


def test_types_of_attributes(read):
    trace = read(ATTRIBUTES)
    found = attributes(trace, "while")
    assert found["outputs"] == {"Out": ["a", '层 "b"']}
    assert found["inputs"] == {"X": []}
    assert (found["sub_block"], found["ints"], found["none"]) == ("block 1", [1, -1], [])
    assert (found["starts"], found["ends"]) == ({"variables": ["a"]}, {"variables": ["a", "b"]})
    assert (found["text"], found["flag"], found["value"], found["is_target"]) == ("a: {", True, 1e-05, False)
    assert [row["text"] for row in trace.meta["skipped_lines"]] == ['attrs { name: "no" }']
    assert [(row["graph"], row["parent"]) for row in trace.meta["paddle"]["blocks"]] == [
        ("block 0", -1),
        ("block 1", 0),
    ]


def test_a_program_without_optimizer_has_parameters_that_nothing_writes(read):
    head, sgd = PROTOBUF.rindex("  ops {"), PROTOBUF.index("}\nversion")
    kinds = {name: row["kind"] for name, row in tensors(read(PROTOBUF[:head] + PROTOBUF[sgd:])).items()}
    assert (kinds["w"], kinds["lr"], kinds["y"]) == ("parameter", "parameter", "temporary")


def test_is_parameter_decides_where_it_is_printed(read):
    text = PROTOBUF.replace("    persistable: true\n", "    persistable: true\n    is_parameter: true\n", 1)
    kinds = {name: row["kind"] for name, row in tensors(read(text)).items()}
    assert (kinds["w"], kinds["lr"]) == ("parameter", "buffer")


def test_attributes_of_a_variable_are_its_own(read):
    attribute = '    attrs {\n      name: "stage"\n      type: INT\n      i: 3\n    }\n'
    found = tensors(read(PROTOBUF.replace("    persistable: true\n", f"    persistable: true\n{attribute}", 1)))
    assert [name for name, row in found.items() if row["attributes"].get("stage") == 3] == ["w"]


def test_variables_and_operations_have_the_lines_where_they_begin(read):
    lines = PROTOBUF.split("\n")
    nodes = read(PROTOBUF).nodes[lambda nodes: nodes["kind"] != "output"]
    begins = {"op": "  ops {", "input": "  vars {", "parameter": "  vars {", "buffer": "  vars {"}
    assert [lines[line - 1] for line in nodes["line"]] == [begins[kind] for kind in nodes["kind"]]
    assert len(set(nodes["line"])) == len(nodes)


def test_a_record_that_lost_its_end_costs_no_other(read):
    trace = read(PROTOBUF.replace('    type: "mean"\n', '    type: "mean"\n    attrs {\n      name: "cut"\n'))
    assert [row["op"] for row in operations(trace)] == ["mul", "mean", "mul_grad", "sgd"]
    assert [row["reason"] for row in trace.meta["skipped_lines"]] == ["its record is cut"]
    assert attributes(trace, "mean")["damaged"] == "its record is cut"


def test_a_program_whose_second_block_is_cut_is_not_complete(read):
    second = PROTOBUF.replace("idx: 0", "idx: 1", 1).replace("parent_idx: -1", "parent_idx: 0", 1)
    assert read(PROTOBUF + second).complete
    trace = read(PROTOBUF + second[: second.rindex("  ops {")])
    assert ([row["operations"] for row in trace.meta["paddle"]["blocks"]], trace.complete) == ([4, 3], False)


def test_one_end_too_many_costs_no_record(read):
    trace = read(PROTOBUF.replace('    type: "mean"\n', '    type: "mean"\n  }\n'))
    assert [row["op"] for row in operations(trace)] == ["mul", "mean", "mul_grad", "sgd"]
    assert [row["graph"] for row in trace.meta["paddle"]["blocks"]] == ["block 0"]


def test_a_block_of_which_nothing_is_printed_is_one(read):
    trace = read("blocks {\n}\n" + PROTOBUF)
    rows = [(row["graph"], row["line"], row["operations"]) for row in trace.meta["paddle"]["blocks"]]
    assert rows == [("block 0", 1, 0), ("program 2 block 0", 3, 4)]


def test_a_text_inside_a_record_begins_no_program_of_another_form(read):
    text = "y = mul(inputs=[x]) { // block 0"
    trace = read(PROTOBUF.replace('"mean"\n', f'"mean"\n    attrs {{\n      name: "a"\n      s: "{text}"\n    }}\n'))
    assert trace.meta["source"] == "Paddle program: protobuf text"
    assert [row["op"] for row in operations(trace)] == ["mul", "mean", "mul_grad", "sgd"]
    assert attributes(trace, "mean")["a"] == text


def test_a_program_without_a_prefix_has_none_of_the_one_before(read):
    """A commented program is followed by another one, in which a `#` is junk."""
    commented = "".join(f"# {line}" for line in PROTOBUF.splitlines(keepends=True))
    trace = read(commented + PROTOBUF.replace('    type: "mean"\n', '    type: "mean"\n# is_target: true\n'))
    assert [row["op"] for row in operations(trace)] == ["mul", "mean", "mul_grad", "sgd"] * 2
    assert [row["text"] for row in trace.meta["skipped_lines"]] == ["# is_target: true"]
