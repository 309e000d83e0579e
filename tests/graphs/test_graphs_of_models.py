"""The sample models as exported programs, against their module trees, steps of theirs and each other."""

import pytest
import torch

import nbkit
from nbkit import Trace
from tests.support.graph_models import batch, exported, model


def counts(found: Trace, level: str) -> dict[str, int]:
    rows = found.correspondence.query(f"level == '{level}'")
    return {name: int(number) for name, number in rows["action"].value_counts().items()}


@pytest.mark.parametrize(("name", "parameters"), [("rwkv4", 116), ("llama", 21)])
def test_an_export_has_the_parameters_of_its_module_tree(name, parameters):
    found = nbkit.opgraph(exported(name), against=model(name))
    rows = found.correspondence.query("level == 'parameter' and action == 'match'")
    assert len(rows[rows["left_name"].isin(dict(model(name).named_parameters()))]) == parameters
    assert (rows["left_name"] == rows["right_name"]).all()
    assert set(rows["relation"]) == {"same"}


@pytest.mark.parametrize("name", ["rwkv4", "llama"])
def test_an_export_is_its_own_counterpart(name):
    one = nbkit.opgraph(exported(name))
    found = nbkit.opgraph(one, against=one)
    assert set(found.correspondence["action"]) == {"match"}
    assert set(found.correspondence["relation"].dropna()) == {"same"}


@pytest.mark.parametrize(("name", "products"), [("rwkv4", 47), ("llama", 15)])
def test_a_recorded_step_has_the_matrix_products_of_the_export(name, products):
    with nbkit.optrace() as step, torch.no_grad():
        model(name)(batch())
    found = nbkit.opgraph(step, against=exported(name))
    rows = found.correspondence.query("level == 'op' and action == 'match'")
    rows = rows[rows["right_op"].isin(["aten.linear.default", "aten.matmul.default"])]
    assert len(rows) == products
    assert set(rows["left_op"]) <= {"aten.mm.default", "aten.bmm.default"}
    assert counts(found, "part").get("match", 0) > 20


def test_different_models_share_only_what_they_have_in_common():
    found = nbkit.opgraph(exported("rwkv4"), against=exported("llama"))
    parts = found.correspondence.query("level == 'part' and action == 'match'").dropna(subset="role")
    assert set(parts["role"]) <= {"embedding", "norm", "block", "head"}
    assert len(parts.query("role == 'block'")) == 2
