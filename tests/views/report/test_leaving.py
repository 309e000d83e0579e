"""A trace as it leaves the machine."""

import json

import pytest

from nbkit.schema import FINDINGS, NODES
from nbkit.trace.trace import Trace
from nbkit.views.report.leaving import leaving, without_elements
from tests.fakes import make_ops, make_trace, small_trace

# In two parts, so that this file names no place of a machine.
HOME = "/" + "home"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("3 NaN, expected 0; worst at [4, 6]: -1.89, expected -1.87", "3 NaN, expected 0; worst at [4, 6]"),
        ("worst at []: (1+2j), expected nan; as float16", "worst at []; as float16"),
        ("1 of 2 elements is NaN, the first at [0, 3]; inputs there: 0, inf", None),
        ("1 of 2 elements is NaN, the first at [1]; inputs there: -1.5e-05, (1+2j), nan, True, 3",
         "1 of 2 elements is NaN, the first at [1]; inputs there: …, (…), nan, True, …"),
        ("inputs: shape [2, 3] from -1.5 to 4; shape [3] from 0 to inf",
         "inputs: shape [2, 3] from … to …; shape [3] from 0 to inf"),
        ("the first at [0], where 70000.5 does not fit (float16 ends at 65504)",
         "the first at [0], where … does not fit (float16 ends at 65504)"),
        ("exact values reach 1e-42, float32 is exact from 1.2e-38 on, and 0 is what is left",
         "exact values reach …, float32 is exact from 1.2e-38 on, and 0 is what is left"),
        ("models/rwkv4.py:50", None),
    ],
)  # fmt: skip
def test_elements_are_left_out_of_messages(text: str, left: str | None) -> None:
    assert without_elements(text) == (left or text)


def test_they_stay_where_values_are_asked_for() -> None:
    row = {
        "op_id": 1,
        "op": "a",
        "phase": "forward",
        "kind": "nan",
        "role": "output",
        "position": 0,
        "dtype": "float32",
    }
    row |= {"shape": "[2]", "nan_count": 1, "inf_count": 0, "message": "inputs there: 3.5"}
    trace = small_trace(error={"type": "NonFiniteError", "message": "aten.log: inputs there: 3.5"})
    trace.frames["findings"] = FINDINGS.frame([row])
    for values, message in ((True, "inputs there: 3.5"), (False, "inputs there: …")):
        left = leaving(trace, values=values)
        assert left.findings["message"].tolist() == [message]
        assert left.meta["error"]["message"] == f"aten.log: {message}"


def test_frames_and_meta_are_shortened_and_the_trace_is_not() -> None:
    source = f"{HOME}/ann/train.py:7"
    error = {"type": "OSError", "message": f"no {HOME}/ann/x", "source": source}
    trace = make_trace(make_ops({"source": source}, {}), notes=[source], skipped={source: 2}, error=error)
    short = leaving(trace, values=True)
    assert short.ops["source"].tolist()[:1] == ["~/train.py:7"] and short.ops["source"].isna().tolist() == [False, True]
    assert (short.meta["notes"], short.meta["skipped"]) == (["~/train.py:7"], {"~/train.py:7": 2})
    assert short.meta["error"] == {"type": "OSError", "message": "no ~/x", "source": "~/train.py:7"}
    assert trace.ops["source"].tolist()[0] == trace.meta["error"]["source"] == source


def test_attributes_of_nodes_stay_json_with_short_paths() -> None:
    texts = ['{"loc": "at /srv/jobs/run1/model.py", "eps": 1e-05}', r'{"loc": "C:\\Users\\ann\\a.py"}', None]
    rows = [
        {"node_id": at, "graph": "g", "kind": "op", "name": "x", "attributes": text} for at, text in enumerate(texts)
    ]
    left = leaving(Trace({"nodes": NODES.frame(rows)}), values=False).nodes["attributes"]
    assert json.loads(left[0]) == {"loc": "at …/run1/model.py", "eps": 1e-05}
    assert json.loads(left[1]) == {"loc": r"~\a.py"}
    assert left.isna().tolist() == [False, False, True]
