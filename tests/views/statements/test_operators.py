"""What traces of the operator tools say: sentences first, then tables."""

import pandas as pd
import pytest
import torch

import nbkit
from nbkit.schema import CASTS, REPLACED
from nbkit.trace.trace import Trace
from nbkit.views.statements.operators import cast_sections, operator_statements, replaced_sections
from nbkit.views.statements.statement import words_text

PLACE = {"module": "layer", "phase": "forward", "source": "train.py:3"}
CAST = {**PLACE, "role": "output", "position": 0, "dtype": "bfloat16", "own_error": 0.0}


def told(trace):
    return [words_text(words) for one in operator_statements(trace) for words in one.sentences]


def cast(op_id, op, **values):
    return {
        **CAST,
        "op_id": op_id,
        "op": op,
        "error": 0.01,
        "overflow_fraction": 0.0,
        "underflow_fraction": 0.0,
        **values,
    }


def casts(*rows):
    return Trace({"casts": CASTS.frame(list(rows))}, {"verb": "opcast"})


def replaced(*rows):
    return Trace({"replaced": REPLACED.frame([{**PLACE, "call": 0, **row} for row in rows])}, {"verb": "opfallback"})


def test_what_was_replaced_is_counted():
    one = {"op_id": 0, "op": "aten.mm.default", "ran": "cpu"}
    assert told(replaced(one)) == ["1 call of 1 op ran on the CPU."]
    other = {"op_id": 1, "op": "aten.exp.default", "ran": "cpu", "message": "in float32: no kernel"}
    assert told(replaced(one, other)) == [
        "2 calls of 2 ops ran on the CPU; 1 call otherwise than in their dtype, see trace.replaced."
    ]
    assert told(replaced({**one, "ran": "float32"})) == ["1 call of 1 op ran in float32."]
    assert told(Trace({})) == []


def test_replaced_ops_have_a_row_each():
    rows = [{"op_id": number, "op": f"aten.{op}.default", "ran": "cpu"} for number, op in enumerate(["a", "b", "b"])]
    (section,) = replaced_sections(replaced(*rows), 1)
    assert section.rows[0][:4] == ["aten.b.default", "cpu", 2, 1] and section.caption == "and 1 more"
    assert replaced_sections(Trace({}), 5) == []


def test_the_cast_that_the_loss_feels_most_is_named():
    trace = casts(
        cast(0, "aten.mm.default", loss_change=-0.5, error=0.001), cast(1, "aten.exp.default", loss_change=0.1)
    )
    assert told(trace) == [
        "Of 2 results computed in bfloat16 as well, that of aten.mm.default in layer would change the loss most, by "
        "-0.5."
    ]
    (section,) = cast_sections(trace, 10)
    assert section.title == "What bfloat16 costs most"
    assert [row[0] for row in section.rows] == ["aten.mm.default", "aten.exp.default"]


def test_without_a_loss_the_largest_error_is_named():
    trace = casts(cast(0, "aten.mm.default"), cast(1, "aten.exp.default", error=0.2, module=None))
    which = "Of 2 results computed in bfloat16 as well, that of aten.exp.default outside modules"
    assert told(trace) == [f"{which} has the largest error, 0.2 of its result."]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"overflow_fraction": 0.1}, "aten.mm.default has numbers that are too large for it."),
        ({"error": 0.9}, "aten.mm.default keeps less than half of its result."),
        ({"error": 0.9, "own_error": 0.9}, None),
    ],
)
def test_what_a_dtype_cannot_hold_is_said(values, expected):
    assert told(casts(cast(0, "aten.mm.default", **values)))[1:] == ([] if expected is None else [expected])


def test_several_are_counted_with_the_first():
    rows = [cast(number, "aten.mm.default", overflow_fraction=0.1) for number in range(3)]
    assert told(casts(*rows))[-1] == "3 calls, first aten.mm.default: each has numbers that are too large for it."


def test_scales_are_told_apart():
    rows = [cast(0, "aten.mm.default", dtype="float8_e4m3fn", scaling=scaling) for scaling in ("none", "block")]
    (section,) = cast_sections(casts(*rows), 10)
    assert [row[2] for row in section.rows] == ["float8_e4m3fn, no scale", "float8_e4m3fn, scale per block"]


def test_an_op_that_did_not_run_is_in_no_table():
    assert cast_sections(casts(cast(0, "aten.mm.default", error=None, message="it does not run")), 5) == []


def test_the_report_begins_with_it(tmp_path):
    with nbkit.opcast("bfloat16", dry_run=True) as trace:
        torch.nn.Linear(3, 3)(torch.ones(2, 3)).sum().backward()
    nbkit.opreport(trace, path=tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "What this run tells" in html and "would change the loss most" in html
    assert "computed in bfloat16 as well" in trace.summary()
    assert isinstance(trace.casts, pd.DataFrame)
