"""A trace as it leaves the machine."""

import json
from collections.abc import Callable

import pandas as pd
import pytest
import torch

import nbkit
from nbkit.findings.finding import Finding, findings_frame
from nbkit.schema import NODES
from nbkit.schema.message import Message, element, joined, message_values
from nbkit.trace.trace import Trace
from nbkit.views.report.leaving import leaving
from tests.support.diff_traces import faulty_trace
from tests.support.fakes import make_ops, make_trace, small_trace

# In two parts, so that this file names no place of a machine.
HOME = "/" + "home"


def findings(message: str) -> pd.DataFrame:
    return findings_frame([Finding("nan", "error", message, "", op_id=1, op="a", phase="forward")])


def test_elements_stay_only_where_values_are_asked_for() -> None:
    message = Message("the first at [3]; inputs there: ", joined(", ", [element("3.5"), element("inf"), element("0")]))
    trace = small_trace()
    trace.frames["findings"] = findings(message)
    trace.meta["error"] = {"type": "NonFiniteError", **error_of(Message("aten.log: ", message))}
    for values, said in ((True, "3.5, inf, 0"), (False, "…, inf, 0")):
        left = leaving(trace, values=values)
        assert left.findings["message"].tolist() == [f"the first at [3]; inputs there: {said}"]
        assert left.findings["message_values"].isna().all()
        assert left.meta["error"]["message"] == f"aten.log: the first at [3]; inputs there: {said}"
    assert trace.findings["message"].tolist() == [str(message)]


def error_of(message: Message) -> dict[str, str | None]:
    return {"message": str(message), "message_values": message_values(message)}


def test_words_that_read_like_elements_stay() -> None:
    trace = small_trace()
    trace.frames["findings"] = findings("inputs there: 3.5")
    assert leaving(trace, values=False).findings["message"].tolist() == ["inputs there: 3.5"]


def test_recorded_messages_have_no_elements_in_a_report() -> None:
    with nbkit.opcheck() as checked:
        torch.tensor([1.25, 2.5]) / torch.zeros(2)
    (message,) = leaving(checked, values=False).findings["message"]
    assert message == "2 of 2 elements are Inf, the first at [0]; inputs there: …, 0"
    compared = leaving(faulty_trace(), values=False)
    (message, _) = compared.diffs["message"].dropna()[:2]
    assert message.endswith("worst at [4, 6]: …, expected …")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        pytest.param(
            lambda: torch.tensor([300.5, 1.0], dtype=torch.float16) * torch.tensor([400.5, 1.0], dtype=torch.float16),
            "1 of 2 elements is Inf where … does not fit (float16 ends at 6.55e+04), the first at [0]; "
            "inputs there: …, …",
            id="overflow",
        ),
        pytest.param(
            lambda: torch.full((4,), 1e-30) * torch.full((4,), 1e-12),
            "no element of 4 keeps its precision: exact values reach …, float32 is exact from 1.175e-38 on, and … is "
            "what is left",
            id="underflow",
        ),
        pytest.param(
            lambda: torch.tensor([[1.5, -2.5]]) @ torch.tensor([[3e38], [-3e38]]),
            "its only element is Inf where … does not fit (float32 ends at 3.403e+38); inputs: shape [1, 2] from … to "
            "…; shape [2, 1] from … to …",
            id="range",
        ),
        pytest.param(
            lambda: torch.tensor([0.0, 1.5e30 + 2e30j]) * torch.tensor([1.0, 2.5e30 + 3e30j]),
            "1 of 2 elements is Inf where … does not fit (complex64 ends at 3.403e+38), the first at [1]; "
            "inputs there: …, …",
            id="complex",
        ),
    ],
)
def test_no_kind_of_finding_names_an_element_in_a_report(step: Callable[[], torch.Tensor], message: str) -> None:
    with nbkit.opcheck() as checked:
        step()
    assert leaving(checked, values=False).findings["message"].tolist() == [message]
    assert "…" not in leaving(checked, values=True).findings["message"].item()


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
    texts += ['{"axis": 1}', "no JSON: /srv/jobs/run1/model.py"]
    rows = [
        {"node_id": at, "graph": "g", "kind": "op", "name": "x", "attributes": text} for at, text in enumerate(texts)
    ]
    left = leaving(Trace({"nodes": NODES.frame(rows)}), values=False).nodes["attributes"]
    assert json.loads(left[0]) == {"loc": "at …/run1/model.py", "eps": 1e-05}
    assert json.loads(left[1]) == {"loc": r"~\a.py"}
    assert left.isna().tolist() == [False, False, True, False, False]
    assert left[3:].tolist() == ['{"axis": 1}', "no JSON: …/run1/model.py"]
