"""Loops over lines of code with thousands of short ops."""

from typing import Any

from nbkit.findings.time.rules import time_findings
from nbkit.schema import LINES
from tests.findings.time.steps import Row, found, frames

ROOT = {"level": "module", "op": "Net", "model": "Net", "module": "", "total_time_us": 9_000.0, "source": None}
KINDS = ("aten.mul.Tensor", "aten.add.Tensor", "aten.exp.default", "aten.sub.Tensor")


def loop(turns: int, *, lines: int = 4, ops_us: float = 1.0, **more: Any) -> list[Row]:
    """A root module that goes through as many lines again and again, 2 us from op to op."""
    return [ROOT, *(_op(turn * lines + line, line, ops_us, more) for turn in range(turns) for line in range(lines))]


def _op(number: int, line: int, ops_us: float, more: dict[str, Any]) -> Row:
    place = {"parent_id": 1, "start_us": 2.0 * ops_us * number, "source": f"models.py:{36 + line}", "module": ""}
    return {"op": KINDS[line % 4], **place, "model": "Net", "total_time_us": ops_us, "self_time_us": ops_us, **more}


def test_a_loop_of_many_short_ops_is_told_with_its_lines() -> None:
    assert found(*loop(400)) == [
        (
            "op_loop",
            "the loop at models.py:36 to 39 runs 1,600 ops of about 1.00 µs, and takes 32 % of the step (3.20 ms): "
            "it is bound by launches",
        )
    ]


def test_its_backward_pass_counts_where_the_forward_op_stands() -> None:
    rows = loop(300)
    backward = [
        {"phase": "backward", "parent_id": 0, "forward_op_id": 2 + at, "start_us": 4_000.0 + at, "source": None}
        for at in range(1_200)
    ]
    ((rule, message),) = found(*rows, *backward)
    assert (rule, message[:47]) == ("op_loop", "the loop at models.py:36 to 39 runs 2,400 ops o")
    assert message.endswith("36 % of the step (3.60 ms), with its backward pass: it is bound by launches")


def test_autograd_s_own_time_is_that_of_its_nodes() -> None:
    rows = loop(300)
    engine = {"level": "api", "op": "torch.autograd.backward", "phase": "backward", "total_time_us": 3_200.0}
    node = {"phase": "backward", "parent_id": len(rows) + 1, "source": None}
    nodes = [{**node, "forward_op_id": 2 + at} for at in range(1_200)] + [node] * 400
    ((_, message),) = found(*rows, {**engine, "self_time_us": 1_600.0}, *nodes)
    assert "takes 48 % of the step (4.80 ms), with its backward pass" in message


def test_layers_of_one_class_have_one_loop() -> None:
    first, second = loop(300), [{**row, "module": "other"} for row in loop(300)]
    second = [{**row, "parent_id": len(first) + 1, "start_us": 4_000.0 + row["start_us"]} for row in second[1:]]
    ((_, message),) = found(*first, {**ROOT, "start_us": 4_000.0}, *second)
    assert message.startswith("the loop at models.py:36 to 39 runs 2,400 ops of about 1.00 µs")


def test_the_finding_stands_at_the_first_line_of_the_body() -> None:
    lines = LINES.frame({"source": ["models.py:36"], "text": ["state = decay * state"]})
    (row,) = time_findings({**frames(*loop(400)), "lines": lines}).to_dict("records")
    assert (row["source"], row["source_text"], row["count"]) == ("models.py:36", "state = decay * state", 1_600)
    assert row["effect_us"] == 3_199.0


def test_a_loop_on_one_line_is_told_too() -> None:
    rows = [{**row, "source": "Cell In[3], line 5"} if row is not ROOT else row for row in loop(400)]
    ((_, message),) = found(*rows)
    assert message.startswith("the loop at Cell In[3], line 5 runs 1,600 ops")


def test_stacks_of_layers_long_ops_and_straight_code_are_no_loops() -> None:
    assert found(*loop(63, lines=24)) == []
    assert found(*loop(400, ops_us=11.0), whole_us=40_000.0) == []
    assert found(*loop(1, lines=1_600)) == []
    assert found(*loop(400), whole_us=30_000.0) == []
    assert found(*loop(240)) == []
    assert found(*loop(400, source=None)) == []


def test_layers_that_are_modules_are_no_loop_of_their_lines() -> None:
    layer = {
        "level": "module",
        "op": "Layer",
        "model": "Net",
        "module": "layers",
        "parent_id": 1,
        "total_time_us": 40.0,
    }
    rows: list[Row] = [ROOT]
    for turn in range(60):
        rows.append({**layer, "module": f"layers.{turn}"})
        rows += [{**_op(turn * 30 + at, at, 1.0, {}), "parent_id": len(rows)} for at in range(30)]
    assert found(*rows) == []
