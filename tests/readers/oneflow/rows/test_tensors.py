import json

from nbkit.graphs.rows import GraphRows
from nbkit.readers.oneflow.rows.tensors import Flow
from nbkit.readers.oneflow.text.operator_line import Description

WHOLE, SPLIT = (Description((sbp,), (8, 2), "float32") for sbp in ("B", "S(0)"))


def test_a_tensor_says_how_it_is_split_and_how_it_is_read_otherwise():
    rows, flow = GraphRows(), Flow("g")
    maker, reader = rows.node("g", "op", "a"), rows.node("g", "op", "b")
    flow.make("t", maker, 0, "op", WHOLE)
    for port, seen in enumerate((WHOLE, SPLIT, SPLIT)):
        flow.reads(reader, port, None, "t", seen)
    flow.reads(reader, 3, "x", "elsewhere", SPLIT)
    assert flow.write(rows) == ["elsewhere"]
    (tensor,) = rows.frames()["graph_tensors"].to_dict("records")
    assert json.loads(tensor["attributes"]) == {"sbp": ["B"], "read_with_sbp": [["S(0)"]]}
    assert (tensor["kind"], tensor["reads"], tensor["writes"], tensor["size_bytes"]) == ("temporary", 3, 1, 64)
