import pytest

from nbkit.readers.oneflow.text.operator_line import Description
from nbkit.readers.oneflow.text.traced import described, traced_op
from nbkit.readers.text_proto import TextProto
from tests.readers.oneflow.logs import variable


def blob(signature, entry, key, *value):
    """The lines of a signature that says one thing of one blob."""
    return [f"{signature} {{", f"{entry} {{", f'key: "{key}"', "value {", *value, "}", "}", "}"]


SHAPE = blob(
    "logical_blob_desc_signature", "bn_in_op2blob_desc", "out_0", "shape {", "dim: 8", "}", "data_type: kFloat"
)
PARTIAL = ("sbp_parallel {", "partial_sum_parallel {", "}", "}")
SPLIT = ("split_parallel {", "axis: 1", "}")


@pytest.mark.parametrize(
    ("sbp", "expected"),
    [
        ([], ()),
        (blob("nd_sbp_signature", "bn_in_op2nd_sbp", "out_0", *PARTIAL, "sbp_parallel {", *SPLIT, "}"), ("P", "S(1)")),
        (blob("sbp_signature", "bn_in_op2sbp_parallel", "out_0", *SPLIT), ("S(1)",)),
    ],
)
def test_how_a_tensor_lies_is_said_in_one_dimension_or_more(sbp, expected):
    proto = TextProto()
    for line in ["op_conf {", 'name: "a-relu-0"', "}", *SHAPE, *sbp]:
        assert proto.add(line)
    assert described(proto.fields) == {"a-relu-0/out_0": Description(expected, (8,), "float32")}


def op_of(*lines):
    proto = TextProto()
    for line in lines:
        assert proto.add(line.strip())
    return traced_op(proto.fields, 3)


def test_a_variable_that_is_no_parameter_of_a_module_is_a_constant():
    names = ("model.fc.weight", "model.fc-FreeEagerTensor-1")
    assert [op_of(f'name: "{name}"', *variable(2, 4)).kind for name in names] == ["parameter", "constant"]


def test_a_shape_of_one_size_is_a_list_and_a_number_is_none():
    made = op_of(
        'name: "a-reshape-0"', "user_conf {", 'op_type_name: "reshape"',
        *("attr {", 'key: "shape"', "value {", "at_shape {", "dim: 8", "}", "}", "}"),
        *("attr {", 'key: "axis"', "value {", "at_int32: 1", "}", "}"), "}",
    )  # fmt: skip
    assert made.attributes["attr"] == {"shape": {"at_shape": [8]}, "axis": {"at_int32": 1}}


def test_a_list_that_the_log_gives_as_one_number_stays_that_number():
    made = op_of(
        'name: "a-sum-0"', "user_conf {", 'op_type_name: "sum"',
        *("attr {", 'key: "axis"', "value {", "at_list_int32: 1", "}", "}"), "}",
    )  # fmt: skip
    assert made.attributes["attr"] == {"axis": {"at_list_int32": 1}}
