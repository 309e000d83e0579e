import pytest

from nbkit.readers.oneflow.text.operator_line import Description
from nbkit.readers.oneflow.text.traced import described
from nbkit.readers.text_proto import TextProto


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
