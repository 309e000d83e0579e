"""The recorded step computes what the bare one computes, to the bit: values, gradients, buffers, RNG state."""

import pytest
import torch

from tests.capture.models import MODELS, OPTIMIZERS, bits, record, trained

DETAILS = {
    "default": {},
    "stats": {"values": "stats"},
    "filters": {"ops": "addmm,*norm*", "exclude_modules": "re:.*[02].*", "exclude_ops": "t"},
}


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_three_training_steps_compute_the_same_bits(model, optimizer, detail):
    """Two dropouts, three steps with SGD-momentum and AdamW, every level of detail."""
    bare, traced = bits(trained(model, optimizer)), []
    trace = record(lambda: traced.extend(bits(trained(model, optimizer))), **DETAILS[detail])
    assert traced == bare
    assert trace.complete
    assert detail == "filters" or steps_of(trace) == [0, 1, 2]


def steps_of(trace):
    return trace.ops.loc[trace.ops["phase"] == "optimizer", "step"].unique().tolist()


def test_the_comparison_sees_a_single_bit():
    one = torch.ones(3)
    assert bits([one]) != bits([one.nextafter(torch.full((3,), 2.0))])
    assert bits([one]) != bits([one.double()])
    assert bits([torch.tensor(0.0)]) != bits([torch.tensor(-0.0)])
    assert bits([torch.tensor(float("nan"))]) == bits([torch.tensor(float("nan"))])


def test_training_draws_from_the_generator():
    before = torch.get_rng_state()
    list(trained("mlp", "sgd", steps=1))
    assert not torch.equal(torch.get_rng_state(), before)
