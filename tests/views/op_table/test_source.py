"""Answers to the op table's questions."""

import json
from typing import Any

import numpy as np
import pytest

from nbkit.trace.trace import Trace
from nbkit.views.op_table.source import OpSource
from tests.support.fakes import fake_trace, make_ops, make_trace, small_trace, timed_trace


@pytest.fixture
def source() -> OpSource:
    return OpSource(small_trace())


def level(name: str) -> dict[str, Any]:
    return {"predicates": [{"column": "level", "op": "equals", "value": name}]}


def ask(source: OpSource, kind: str, **message: Any) -> dict[str, Any]:
    return source.answer({"kind": kind, "id": "view-1", **message})


def test_rows_carry_id_depth_and_raw_cells(source: OpSource) -> None:
    answer = ask(source, "rows", query={"predicates": [{"column": "op", "op": "contains", "value": "addmm"}]})
    assert answer["id"] == "view-1"
    assert (answer["matched"], answer["amount"], answer["largest"]) == (1, 40, 40)
    assert answer["columns"][:5] == ["op_id", "op", "self_time_us", "self_fraction", "module"]
    assert answer["rows"][0][:7] == [1, 1, 1, "aten.addmm.default", 40, pytest.approx(40 / 150), "fc"]


@pytest.mark.parametrize("other", ["first", "second"])
def test_a_column_of_one_text_is_not_shown(other: str) -> None:
    trace = make_trace(make_ops({"model": "first"}, {"model": other}))
    assert ("model" in OpSource(trace).shown_columns) is (other != "first")


def test_all_bars_of_a_page_have_one_scale(source: OpSource) -> None:
    answer = ask(source, "rows")
    assert answer["largest"] == max(row[answer["columns"].index("self_time_us") + 2] for row in answer["rows"]) == 62


def test_profiles_are_those_of_the_rows_that_match(source: OpSource) -> None:
    query = {"predicates": [{"column": "phase", "op": "equals", "value": "backward"}]}
    columns = ask(source, "profile", query=query)["columns"]
    assert list(columns) == ask(source, "rows")["columns"]
    assert columns["phase"] == {"top": [["backward", 3]], "different": 1, "missing": 0, "count": 3}
    assert (columns["self_time_us"]["high"], sum(columns["self_time_us"]["bins"])) == (62.0, 3)


def test_a_regular_expression_of_javascript_alone_is_said(source: OpSource) -> None:
    query = {"predicates": [{"column": "op", "op": "regex", "value": "\\u{61}("}]}
    answer = ask(source, "rows", query=query)
    assert answer["matched"] == 8
    assert answer["errors"]["op"].startswith("The kernel cannot use the regular expression")


def test_columns_that_are_the_same_everywhere_are_left_out(source: OpSource) -> None:
    columns = ask(source, "rows")["columns"]
    assert {"thread", "flops"} <= set(columns)
    assert {"device", "model", "step", "stream"}.isdisjoint(columns)


def test_pages_begin_at_their_offset_and_stay_small() -> None:
    long = "é" * 250
    source = OpSource(make_trace(make_ops(*({"op": f"{n}{long}", "module": long, "source": long} for n in range(150)))))
    answer = ask(source, "rows", offset=10, limit=100)
    assert answer["rows"][0][0] == 10
    assert 10 < len(answer["rows"]) < 100
    assert len(json.dumps(answer, ensure_ascii=False).encode()) <= 50_000


def test_detail_of_an_op(source: OpSource) -> None:
    detail = ask(source, "detail", op_id=6)
    links = {name: links["links"] for name, links in detail["links"].items()}
    assert links["producers"] == [[5, "aten.threshold_backward.default"]]
    assert links["consumers"] == [[7, "aten.add_.Tensor"]]
    assert links["forward"] == [[1, "aten.addmm.default"]]
    assert links["called_by"] == [[4, "torch.Tensor.backward"]]
    assert (detail["class"], detail["fields"]["self_time_us"]) == ("Linear", 62)
    assert [row[0] for row in detail["tensors"]["rows"]] == ["input", "output"]


def test_detail_of_an_api_call_shows_the_tensors_of_the_ops_below(source: OpSource) -> None:
    tensors = ask(source, "detail", op_id=0)["tensors"]
    assert tensors["columns"][0] == "op_id"
    assert [row[:3] for row in tensors["rows"]] == [
        [1, "input", None],
        [1, "input", "fc.weight"],
        [1, "output", None],
    ]


def test_detail_shows_statistics_where_they_were_recorded() -> None:
    tensors = ask(OpSource(fake_trace(30)), "detail", op_id=1)["tensors"]
    assert tensors["columns"][-7:] == ["mean", "std", "min", "max", "norm", "nan_count", "inf_count"]
    assert tensors["rows"][0][-7:] == [0.01, 1, -4.2, 4.1, 64.3, 0, 0]


def test_position_is_that_in_the_query(source: OpSource) -> None:
    query = {"sort": [{"column": "self_time_us", "descending": True}]}
    assert ask(source, "position", op_id=1, query=query)["position"] == 1
    assert (
        ask(source, "position", op_id=1, query={"predicates": [{"column": "op", "op": "contains", "value": "relu"}]})[
            "position"
        ]
        is None
    )


def test_modules_come_in_pages_that_end() -> None:
    source = OpSource(fake_trace(9000, layers=100))
    first = ask(source, "modules")
    rest = ask(source, "modules", offset=len(first["rows"]))
    assert len(first["rows"]) == 400
    assert first["total"] == 1002
    assert rest["rows"][0] != first["rows"][0]
    assert len(json.dumps(first).encode()) <= 50_000


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"kind": "dance"}, "The op table knows no question 'dance'."),
        ({"kind": "detail", "op_id": 8}, "There is no op 8; the last one is 7."),
        ({"kind": "rows", "query": {"sort": [{"column": "speed"}]}}, "has no column 'speed'"),
        ({"kind": "rows", "query": {"speed": 1}}, "TypeError"),
        ({}, "knows no question None"),
    ],
)
def test_a_question_that_cannot_be_answered_gets_an_error(source: OpSource, message: dict[str, Any], text: str) -> None:
    answer = source.answer(message)
    assert answer["kind"] == "error"
    assert text in answer["message"]


def test_traces_of_ops_alone_can_be_shown() -> None:
    source = OpSource(Trace({"ops": make_ops({"module": "a"})}, {"complete": True}))
    assert ask(source, "rows")["matched"] == 1
    assert ask(source, "detail", op_id=0)["tensors"]["rows"] == []
    assert source.overview()["title"] == "trace"


def test_rows_of_a_timeline_show_levels_shapes_and_device_times() -> None:
    answer = ask(OpSource(timed_trace()), "rows", query=level("aten"))
    columns = answer["columns"]
    assert {"level", "input_shapes", "self_device_time_us", "flops"} <= set(columns)
    assert {"output", "group", "size_bytes"}.isdisjoint(columns)
    matmul = dict(zip(columns, answer["rows"][0][2:], strict=True))
    assert (matmul["self_device_time_us"], matmul["input_shapes"]) == (40, "[[2, 8], [8, 8]]")


def test_work_on_a_device_is_not_added_to_the_hosts_time() -> None:
    source = OpSource(timed_trace())
    assert ask(source, "rows")["amount"] == 125
    assert ask(source, "rows", query=level("kernel"))["amount"] == 0
    root, fc = ask(source, "modules")["rows"]
    assert (root[2], fc[-1]) == ("Net", 60)


def test_header_of_a_timeline_has_the_phases_of_all_host_time() -> None:
    overview = OpSource(timed_trace()).overview()
    assert [(part["phase"], part["calls"], part["us"]) for part in overview["phases"]] == [
        ("forward", "3 calls", 30.0),
        ("backward", "2 calls", 70.0),
        ("optimizer", "2 calls", 15.0),
        ("other", "1 call", 10.0),
    ]
    assert overview["counted"] == "calls"
    assert ["median of", "5 repeats after 2 to warm up"] in overview["figures"]


def test_detail_of_a_kernel() -> None:
    detail = ask(OpSource(timed_trace()), "detail", op_id=4)
    fields = detail["fields"]
    assert (fields["self_device_time_us"], fields["stream"], fields["device"]) == (40, 7, "cuda:0")
    assert detail["links"]["called_by"]["links"] == [[3, "cudaLaunchKernel"]]


def test_a_limit_holds_in_every_query_until_it_is_lifted() -> None:
    source = OpSource(small_trace())
    assert ask(source, "rows", query=level("aten"))["matched"] == 6
    source.limit_to(np.array([0, 1, 7, 99, -1]))
    assert ask(source, "rows", query=level("aten"))["matched"] == 2
    assert ask(source, "position", op_id=7)["position"] == 2
    assert ask(source, "position", op_id=2)["position"] is None
    source.limit_to(None)
    assert ask(source, "rows", query=level("aten"))["matched"] == 6
