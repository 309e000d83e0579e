"""Tests FLOPs of whole training steps against closed forms of the models' sizes, and how many calls have a rule."""

import pytest

import nbkit
from tests.flops.families import FAMILIES
from tests.flops.nets import NETS

FEW = ("gpt2", "llama")


def share_with_rule(costs):
    """Returns the share of calls of known FLOPs, of products and elementwise, among those that compute."""
    computing = costs[(costs["read_bytes"] > 0) & (costs["flops"].fillna(1) + costs["elementwise_flops"].fillna(1) > 0)]
    return float(computing[["flops", "elementwise_flops"]].notna().all(axis=1).mean())


def check(model, forward, flops):
    trace = nbkit.opcost().run(lambda: forward(model).float().sum().backward())
    by_phase = trace.costs.groupby("phase")["flops"].sum()
    assert (by_phase["forward"], by_phase["backward"]) == flops
    assert share_with_rule(trace.costs) >= 0.98
    assert trace.meta["unknown_flops"] == {}


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.full) for name in FAMILIES]
)
def test_a_step_of_a_family_has_the_flops_of_its_closed_form(name):
    family = FAMILIES[name]
    inputs = family.inputs()
    check(family.make(), lambda model: model(**inputs).logits, family.flops)


@pytest.mark.parametrize("name", NETS)
def test_a_step_of_a_net_has_the_flops_of_its_closed_form(name):
    net = NETS[name]
    inputs = net.inputs()
    check(net.make(), lambda model: model(inputs), net.flops)
