"""Causes and consequences: what is linked, and what only stands beside each other."""

import json

import pandas as pd
import pytest
import torch

import nbkit
from nbkit.findings.causes import FOLLOWS, SAME_LINE, causes_of
from nbkit.findings.finding import Finding, findings_frame


def finding(rule, step=0, severity="error", **fields):
    return Finding(rule, severity, f"{rule} is so", "Mend it.", step=step, **fields)


def links(*findings):
    table = causes_of(findings_frame(findings))
    return [
        None if pd.isna(cause) else (cause, how) for cause, how in zip(table["cause"], table["relation"], strict=True)
    ]


def kept(step, name="w"):
    return finding("input", step, parameter=name, op="aten.mm.default", phase="forward", source="a.py:1")


NAN = {"op": "aten.div.Tensor", "phase": "forward", "source": "a.py:7"}
GRADIENT = {"op": "aten.mul.Tensor", "phase": "backward", "source": "a.py:7"}


def test_the_loss_the_gradients_and_later_the_parameters_follow_from_the_first_nan():
    found = (
        finding("loss_not_finite", 211),
        finding("nan", 211, **NAN),
        finding("nan", 211, **GRADIENT),
        finding("non_finite_gradient", 211),
        kept(299, "w"),
        kept(299, "v"),
        finding("input", 299, op="aten.lerp_.Scalar", phase="optimizer"),
    )
    assert links(*found) == [(1, FOLLOWS), None, *[(1, FOLLOWS)] * 5]


def test_what_was_nan_before_the_nan_began_does_not_follow_from_it():
    assert links(kept(3), finding("nan", 211, **NAN)) == [None, None]
    # A batch is not what training has made.
    batch = finding("input", 299, op="aten.mm.default", phase="forward")
    assert links(finding("nan", 211, **NAN), batch) == [None, None]
    assert links(finding("nan", 7, **NAN), finding("loss_not_finite", 211)) == [None, None]
    of_gradient = finding("nan", 211, op="aten.div.Tensor", phase="backward")
    assert links(finding("loss_not_finite", 211), of_gradient) == [None, None]


def test_parameters_that_came_in_with_nan_are_one_cause_and_explain_the_loss():
    assert links(finding("loss_not_finite", 0), kept(0, "w"), kept(0, "v")) == [(1, FOLLOWS), None, (1, FOLLOWS)]
    assert links(finding("loss_not_finite", 5), kept(9)) == [None, (0, FOLLOWS)]


def test_an_unusual_batch_explains_a_jump_of_the_same_step():
    batch = finding("unusual_batch", 37, "warning", evidence={"rows": [11]}, op="aten.addmm.default")
    target = finding("unusual_batch", 37, "warning", evidence={"rows": [11]}, op="aten.mse_loss.default")
    other = finding("unusual_batch", 37, "warning", evidence={"rows": [2]}, op="aten.mse_loss.default")
    assert links(finding("loss_spike", 37), batch, target, other) == [(1, FOLLOWS), None, (1, FOLLOWS), None]
    assert links(finding("loss_spike", 36), batch) == [None, None]


def test_the_same_line_in_other_modules_is_told_once_other_lines_are_not():
    mask = {"op": "aten.triu.default", "source": "a.py:3", "phase": "forward"}
    found = [finding("hidden_diagonal", severity="warning", module=f"blocks.{n}", **mask) for n in range(3)]
    elsewhere = finding("hidden_diagonal", severity="warning", module="x", **{**mask, "source": "a.py:9"})
    assert links(*found, elsewhere) == [None, (0, SAME_LINE), (0, SAME_LINE), None]
    costly = [finding("attention", severity="hint", module=str(n), effect_us=5.0, **mask) for n in range(2)]
    assert links(*costly) == [None, None]


def test_recordings_are_told_apart_by_name():
    first = finding("nan", evidence={"op_ids": [4]}, **NAN)
    later = finding("nan", op="aten.sub.Tensor", source="b.py:1", evidence={"recording": "b", "follows_from": 4})
    assert links(first, later) == [None, None]
    same = finding("nan", op="aten.sub.Tensor", source="b.py:1", evidence={"follows_from": 4})
    assert links(first, same) == [None, (0, FOLLOWS)]


def test_no_findings_have_no_causes_and_evidence_that_is_no_json_links_nothing():
    assert links() == []
    table = findings_frame([finding("nan", **NAN)]).assign(evidence="seen by eye")
    assert causes_of(table)["cause"].isna().all()


@pytest.mark.parametrize("reaches", [True, False])
def test_a_check_links_a_nan_to_the_op_whose_inf_it_was_computed_from(reaches):
    with nbkit.opcheck() as trace:
        big = torch.full((2, 3), 200.0).exp()
        row = big.view(3, 2).t() * 2 if reaches else torch.full((2, 3), 300.0).exp()
        (row - row.max()).softmax(-1)
        torch.zeros(2) / torch.zeros(2)  # no Inf goes in
        torch.full((2, 2), -torch.inf).softmax(-1)  # the Inf is no fault's
    found = trace.findings
    rows = dict(zip(found["op"] + found["rule"], causes_of(found)["cause"], strict=True))
    assert rows["aten.sub.Tensornan"] == (0 if reaches else 1)
    assert pd.isna(rows["aten.div.Tensornan"]) and pd.isna(rows["aten._softmax.defaultnan"])
    evidence = json.loads(found["evidence"][found["op"] == "aten.sub.Tensor"].iloc[0])
    assert found["op"][found["op_id"] == evidence["follows_from"]].tolist() == ["aten.exp.default"]


def test_passes_that_feed_each_other_have_a_first_cause():
    """Two forward passes in one recording: the second computes with what the first one's backward pass made."""
    scale = torch.zeros(3, requires_grad=True)
    with nbkit.opcheck() as trace:
        for _ in range(2):
            scale.grad = None
            scale.sqrt().sum().backward()
            with torch.no_grad():
                scale -= 0.1 * scale.grad
    table = causes_of(trace.findings)
    assert len(table) > 1 and table["cause"].isna().sum() >= 1 and pd.isna(table["cause"].iloc[0])
    assert trace.brief()
