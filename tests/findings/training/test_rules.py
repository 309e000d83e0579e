"""Tests the rules of a training audit on frames made by hand."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import nbkit
from nbkit.findings.training.facts import Audit, Skip
from nbkit.findings.training.names import listed_names
from nbkit.findings.training.over_steps.accumulation import Met, accumulations
from nbkit.findings.training.rules import audit_findings
from nbkit.schema import MODULES, OPS, TENSORS
from tests.findings.training.audits import audit, op, parameters, tensor


def rules(*rows, **facts):
    found = audit_findings(audit(*rows, **facts))
    return list(zip(found["rule"], found["severity"], strict=True))


CASES = {
    "right": ({}, []),
    "frozen": ({"requires_grad": False, "gradient": "none", "changed_fraction": 0.0}, [("frozen_parameter", "hint")]),
    "not used": ({"gradient": "none", "changed_fraction": 0.0, "calls": 0}, [("never_called", "hint")]),
    "used, but by no op that was seen": ({"gradient": "none", "changed_fraction": 0.0}, []),
    "zero": ({"gradient": "zero", "changed_fraction": 0.0}, [("zero_gradient", "hint")]),
    "zero for long": ({"gradient": "zero", "optimizer_steps": 3}, [("zero_gradient", "warning")]),
    "NaN": ({"gradient": "non_finite"}, [("non_finite_gradient", "error")]),
    "NaN without a step": ({"gradient": "non_finite", "optimizer_steps": 0}, []),
    "lost": ({"changed_fraction": 0.0}, [("lost_update", "warning")]),
    "rate of 0": ({"changed_fraction": 0.0, "learning_rate": 0.0}, []),
    "unknown rate": ({"changed_fraction": 0.0, "learning_rate": None}, []),
    "end of a schedule": ({"changed_fraction": 0.0, "learning_rate": 1e-9}, []),
    "half lost in bfloat16": ({"changed_fraction": 0.05, "dtype": "bfloat16"}, [("lost_update", "warning")]),
    "sparse gradient": ({"changed_fraction": 0.05, "dtype": "bfloat16", "gradient_zero_fraction": 0.9}, []),
    "moved by hand": ({"in_optimizer": 0, "optimizer_steps": 0}, []),
    "unknown optimizer": ({"in_optimizer": None, "optimizer_steps": None, "changed_fraction": 0.0}, []),
}


@pytest.mark.parametrize("case", CASES)
def test_one_parameter_among_right_ones(case):
    row, expected = CASES[case]
    assert rules(row, *[{"module": "b", "learning_rate": 0.2}] * 3) == expected


def test_tied_weights_are_told_once():
    assert rules({"gradient": "non_finite"}, {"tied_with": "a.w0", "gradient": "non_finite"}, {}) == [
        ("non_finite_gradient", "error")
    ]


@pytest.mark.parametrize(("outside", "severity"), [(1, "warning"), (4, "hint")])
def test_a_small_part_outside_of_the_optimizer_is_a_mistake(outside, severity):
    missing = {"in_optimizer": 0, "optimizer_steps": 0, "changed_fraction": 0.0}
    assert rules(*[missing] * outside, {}, {}) == [("not_in_optimizer", severity)]
    assert rules(*[missing] * outside, {}, {}, steps=0) == []


def test_what_only_a_backward_op_reads_is_never_called():
    unused = audit({"name": "a.w", "gradient": "none", "changed_fraction": 0.0, "calls": 0}, {})
    read = TENSORS.frame([tensor(0, "input", 1, name="a.w")])  # by the one op, which is of the backward pass
    assert audit_findings(replace(unused, tensors=read))["rule"].tolist() == ["never_called"]


def chain(rows, layers):
    """The findings of a chain of linear layers with these parameters."""
    modules = {"model": ["Net"] * layers, "module": [str(n) for n in range(layers)], "type": ["Linear"] * layers}
    counts = dict.fromkeys(
        ("depth", "calls", "params", "trainable_params", "param_bytes", "buffer_bytes"), [1] * layers
    )
    frames = OPS.frame(), TENSORS.frame(), MODULES.frame(modules | counts)
    return audit_findings(Audit(parameters(*rows), *frames, texts={}, modes={}))


@pytest.mark.parametrize(
    ("factor", "layers", "expected"),
    [(10, 8, "warning"), (3, 8, "hint"), (2, 8, None), (10, 4, None), (1, 9, None)],
)
def test_gradients_along_the_depth(factor, layers, expected):
    rows = [{"module": str(n), "name": f"{n}.weight", "gradient_norm": float(factor) ** n} for n in range(layers)]
    assert chain(rows, layers)["severity"].tolist() == ([expected] if expected else [])


def test_gradients_of_biases_along_the_depth_are_not_told_beside_those_of_the_weights():
    shapes = {"weight": "[4, 4]", "bias": "[4]"}
    rows = [
        {"module": str(n), "name": f"{n}.{name}", "gradient_norm": 10.0**n, "shape": shape}
        for n in range(8)
        for name, shape in shapes.items()
    ]
    assert chain(rows, 8)["parameter"].tolist() == ["0.weight"]
    assert not len(chain([row for row in rows if "bias" in row["name"]], 8))


@pytest.mark.parametrize(
    ("scales", "steps", "severity"),
    [
        ([65536.0], 0, "hint"),
        ([2.0**n for n in range(16, 11, -1)], 0, "warning"),
        ([65536.0] * 9, 3, "hint"),
        ([1.0], 4, "warning"),
    ],
)
def test_skipped_steps(scales, steps, severity):
    skips = [Skip(0, "SGD", scale) for scale in scales]
    row = {"gradient": "non_finite", "optimizer_steps": 0, "skipped_steps": len(scales)}
    assert rules(row, skips=skips, steps=steps) == [("skipped_step", severity)]


def added(*between, steps=((0, 7), (1, 7)), is_earlier=False):
    """Whether a gradient in memory 7 was added to one that was used, with these ops (name, phase) after a step."""
    ops = OPS.frame([op(number, name, phase, step=1) for number, (name, phase) in enumerate(between)])
    written = TENSORS.frame([tensor(number, "output", 7) for number in range(len(between))])
    return [one.op_id for one in accumulations([Met("Net", "a.w0", steps, is_earlier)], ops, written)]


ADD = ("aten.add_.Tensor", "backward")
ZERO, CLIP = ("aten._foreach_zero_.default", "other"), ("aten.mul_.Tensor", "other")


def test_what_is_added_to_a_gradient_that_a_step_used():
    assert added(ADD) == added(ADD, ADD) == added(ADD, CLIP) == [0]
    assert added(ZERO, ADD) == added(CLIP, ADD) == added() == []
    assert (
        added(ADD, steps=[(0, 7), (1, 8)]) == added(ADD, steps=[(0, 7), (1, None)]) == added(ADD, steps=[(1, 7)]) == []
    )


def test_a_gradient_that_several_steps_add_to_is_told_once():
    ops = OPS.frame([op(step, *ADD, step=step) for step in range(4)])
    written = TENSORS.frame([tensor(step, "output", 7) for step in range(4)])
    met = Met("Net", "a.w0", [(step, 7) for step in range(4)], True)
    assert [(one.op_id, one.is_earlier) for one in accumulations([met], ops, written)] == [(1, False)]


def test_what_was_there_before_the_recording():
    assert added(ADD, steps=[(1, 7)], is_earlier=True) == [0]
    assert added(ZERO, ADD, steps=[(1, 7)], is_earlier=True) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.w0"], "a.w0"),
        (["a.w0", "a.w1"], "a (2 tensors)"),
        (["a.w0", "b.c.w2", "b.c.w3"], "a.w0, b.c (3 tensors)"),
        (["a.w0", "a.w1", "b.c.w2", "b.c.w3"], "a, b.c (4 tensors)"),
        (["a.w0", "a.w1", "b.c.w2", "b.c.w3", "w4"], "all 5 parameters of Net"),
    ],
)
def test_names_of_parameters(names, expected):
    rows = [{"module": module} for module in ("a", "a", "b.c", "b.c")]
    assert listed_names(audit(*rows, {"module": "", "name": "w4"}), "Net", names) == expected


def test_many_layers_are_named_by_what_holds_them():
    rows = [{"module": f"body.{n}"} for n in range(6)]
    names = [f"body.{n}.w{n}" for n in range(6)]
    assert listed_names(audit(*rows, {"module": "head"}), "Net", names) == "body (6 tensors)"


def test_suspicious_dataflow_is_among_the_findings_of_an_audit():
    scores = torch.randn(4, 4, requires_grad=True)
    with nbkit.opaudit() as trace:
        F.cross_entropy(scores.softmax(1), torch.arange(4)).backward()
    assert ["double_activation", "warning"] in trace.findings[["rule", "severity"]].to_numpy().tolist()
