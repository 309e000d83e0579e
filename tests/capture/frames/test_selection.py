"""Filters keep and leave out ops by name and module; the step runs the same, and what was left out is counted."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit import OptionError, PatternError
from tests.capture.models import aten, mlp, record, recorded_ops


def step():
    x = torch.tensor([3.0, 1.0, 2.0])
    x.add(1).sub(2).sort()
    F.relu(x)


ALL = {"aten.add.Tensor", "aten.sub.Tensor", "aten.sort.default", "aten.relu.default", "aten.lift_fresh.default"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ALL),
        ({"exclude_ops": "add,sub"}, ALL - {"aten.add.Tensor", "aten.sub.Tensor"}),
        ({"exclude_ops": " add , sub "}, ALL - {"aten.add.Tensor", "aten.sub.Tensor"}),
        ({"ops": ""}, set()),
        ({"ops": []}, set()),
        ({"ops": "sort, add"}, {"aten.sort.default", "aten.add.Tensor"}),
        ({"ops": "sort,add", "exclude_ops": "sort"}, {"aten.add.Tensor"}),
        ({"ops": "torch.Tensor.backward"}, set()),
        ({"ops": "re:torch\\.Tensor\\.(add|sub)"}, {"aten.add.Tensor", "aten.sub.Tensor"}),
        ({"ops": ["torch.nn.functional.relu"]}, {"aten.relu.default"}),
        ({"ops": "*"}, ALL),
        ({"ops": "re:"}, set()),
    ],
)
def test_filters_by_op(options, expected):
    """Defects B44-B46."""
    trace = record(step, **options)
    # Of torch.tensor(), which a dispatch mode does not see.
    assert set(recorded_ops(trace)) - {"aten.detach_.default"} == expected
    assert set(trace.tensors["op_id"]) <= set(trace.ops["op_id"])
    assert trace.ops["op_id"].tolist() == list(range(len(trace.ops)))
    everything = len(record(step).ops)
    assert trace.meta["filtered_ops"] == everything - len(trace.ops)


@pytest.mark.parametrize(
    ("options", "modules"),
    [
        ({"modules": "0"}, {"0"}),
        ({"modules": "0,6"}, {"0", "6"}),
        ({"exclude_modules": "[0-5]"}, {"6", "outside"}),
        ({"modules": "re:[06]", "exclude_modules": "6"}, {"0"}),
        ({"modules": "nothing"}, set()),
    ],
)
def test_filters_by_module(options, modules):
    net, x = mlp(), torch.ones(2, 6)
    trace = record(lambda: net(x).sum().backward(), **options)
    assert set(aten(trace)["module"].fillna("outside")) == modules


def test_a_module_brings_all_it_holds():
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Linear(2, 2))
    trace = record(lambda: net(torch.ones(1, 2)), modules="0")
    assert aten(trace)["module"].drop_duplicates().tolist() == ["0.0", "0.1"]


def test_links_to_rows_that_were_left_out_are_null():
    net = mlp()
    trace = record(lambda: net(torch.ones(2, 6)).sum().backward(), ops="mm")
    assert set(recorded_ops(trace)) == {"aten.mm.default"}
    assert trace.ops["parent_id"].isna().all()
    assert trace.ops["forward_op_id"].isna().all()
    both = record(lambda: net(torch.ones(2, 6)).sum().backward(), ops="aten.mm,aten.addmm")
    linked = both.ops.loc[aten(both, "aten.mm")["forward_op_id"], "op"]
    assert set(linked) == {"aten.addmm.default"}


@pytest.mark.parametrize("option", ["ops", "exclude_ops", "modules", "exclude_modules"])
@pytest.mark.parametrize(("bad", "text"), [("re:(", "is not a regular expression"), ([3], "A pattern is text, not 3")])
def test_a_bad_pattern_is_refused_before_anything_runs(option, bad, text):
    """Defect B47."""
    ran = []
    with pytest.raises(PatternError, match=text), nbkit.optrace(**{option: bad}):
        ran.append(1)
    assert ran == []


def test_unknown_options_and_values_are_refused():
    with pytest.raises(OptionError, match=r"values='stat' is not known; did you mean 'stats'\?"):
        nbkit.optrace(values="stat")
    with pytest.raises(TypeError, match="unexpected keyword argument 'op'"):
        nbkit.optrace(op="add")


def test_the_filters_stand_in_meta():
    trace = record(step, ops=["add", "sub"], exclude_modules="a*")
    assert trace.meta["filters"] == {"ops": "add,sub", "exclude_modules": "a*"}


def test_patterns_that_fit_nothing_are_said():
    trace = record(step, ops="add, sud", exclude_modules="a*,b")
    assert trace.meta["notes"] == [
        "ops='sud' fits no op that ran.",
        "exclude_modules='a*' fits no module that ran.",
        "exclude_modules='b' fits no module that ran.",
    ]
    assert record(step, ops="add,torch.nn.functional.relu").meta["notes"] == []
    net = nn.Sequential(nn.Linear(2, 2))
    assert record(lambda: net(torch.ones(1, 2)), modules="0", exclude_modules="").meta["notes"] == []
