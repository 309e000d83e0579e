"""A shape rule of a Python function runs in its place on shapes alone, and nowhere else."""

import pytest
import torch
from torch import nn

import nbkit
from nbkit.capture.cost import ruled_functions
from tests.capture.cost import functions_to_rule
from tests.capture.cost.functions_to_rule import Kernel, pair, scan

SCAN = "python.tests_capture_cost_functions_to_rule_scan.default"


@pytest.fixture(autouse=True)
def no_rules_stay(monkeypatch):
    monkeypatch.setattr(ruled_functions, "_RULES", {})


def model():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU())


def test_the_rule_runs_in_place_of_the_function_and_gradients_pass_it():
    nbkit.register_shape_formula(scan)(lambda x, decay=None, *, chunk=4: x.new_empty(*x.shape[:-1], chunk))
    layers, x = model(), torch.randn(2, 4)
    trace = nbkit.opcost().run(lambda: scan(layers(x), chunk=3).sum().backward())
    (row,) = trace.costs[trace.costs["op"] == SCAN].to_dict("records")
    assert (row["phase"], row["written_bytes"]) == ("forward", 2 * 3 * 4)
    is_product = trace.costs["flops"].fillna(0) > 0
    assert trace.costs[is_product]["phase"].tolist() == ["forward", "backward"]  # of the layer before it
    assert trace.meta["unknown_flops"] == {SCAN: 1, SCAN.replace("scan", "scan_backward"): 1}
    assert any("scan ran by its shape rule (1 call)" in note for note in trace.meta["notes"])
    assert functions_to_rule.scan is scan and torch.equal(scan(x), x.cumsum(-1))


def test_without_a_rule_it_is_refused():
    with pytest.raises(Exception, match="needs memory"):
        nbkit.opcost().run(lambda: scan(torch.ones(2)))


def test_what_it_returns_may_be_any_form_and_what_it_was_given():
    nbkit.register_shape_formula(pair)(lambda x: {"same": x, "half": [x.new_empty(1, dtype=torch.half)], "count": 3})
    returned = []

    def step():
        x = torch.ones(2, requires_grad=True)
        returned.append(pair(x))
        (returned[0]["same"].sum() + returned[0]["half"][0].sum()).backward()

    assert nbkit.opcost().run(step).complete
    assert returned[0]["count"] == 3 and returned[0]["same"].shape == (2,)
    assert returned[0]["half"][0].dtype == torch.half and returned[0]["half"][0].requires_grad


def test_a_method_has_a_rule_and_the_table_has_its_row():
    nbkit.register_shape_formula(Kernel.forward)(lambda self, x: x.new_empty(len(x)))
    table = nbkit.cost_table(nn.Sequential(nn.Linear(4, 4), Kernel()), torch.ones(2, 4))
    assert table["backward_flops"].iloc[1] == 2 * 2 * 4 * 4
    assert table["shape"].iloc[-1] == "[2]"


def test_flops_may_be_said():
    nbkit.register_shape_formula(scan)(lambda x, **_: x.new_empty(x.shape))
    nbkit.register_flop_formula(scan)(lambda shapes: 5 * shapes[0][0])
    trace = nbkit.opcost().run(lambda: scan(torch.ones(7, 2)))
    assert trace.costs.set_index("op")["flops"][SCAN] == 35
    assert not trace.meta["unknown_flops"]


def test_a_result_with_values_is_told_in_one_sentence():
    real = torch.ones(3)
    nbkit.register_shape_formula(scan)(lambda x, **_: real)
    message = r"The shape rule of .*scan returned a tensor with values, of shape \[3\].*x\.new_empty"
    with pytest.raises(nbkit.CostError, match=message):
        nbkit.opcost().run(lambda: scan(torch.ones(2)))
    assert functions_to_rule.scan is scan and not ruled_functions._RUNNING


def test_what_a_rule_raises_is_the_steps_own():
    def rule(x):
        raise ValueError("mine")

    nbkit.register_shape_formula(scan)(rule)
    with pytest.raises(ValueError, match="mine"):
        nbkit.opcost().run(lambda: scan(torch.ones(2)))
    assert functions_to_rule.scan is scan and not ruled_functions._RUNNING


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (nn.functional.relu, "torch.nn.functional.relu is torch's own function.*give the rule to the op"),
        (lambda x: x, "is not in its module under its own name"),
        (3, "3 is not an op"),
    ],
)
def test_other_targets_are_refused(target, message):
    with pytest.raises(nbkit.OptionError, match=message):
        nbkit.register_shape_formula(target)(lambda x: x)
