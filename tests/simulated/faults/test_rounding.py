"""Tests how far a fault moved a result beside rounding, on literal values."""

import pytest
import torch
import torch.nn.functional as F

from nbkit import Fault
from nbkit.simulated.call import Call
from nbkit.simulated.faults.rounding import rounding_ratio

EPS = torch.finfo(torch.float32).eps


def ratio_of(device, fault, step):
    with device.planted(fault) as planted:
        step()
    return planted.report()["rounding_ratio"].iloc[0]


@pytest.mark.parametrize(("dtype", "eps"), [(torch.float32, 2**-23), (torch.bfloat16, 2**-7), (torch.float16, 2**-10)])
def test_a_changed_element_is_set_against_eps_of_the_dtype(device, dtype, eps):
    x = torch.full((4,), 1.0, dtype=dtype).to("sim")
    # eps |right| and its root mean square; an exact copy has a conditioning of float32's eps, with its own.
    allowed = 2 * (eps + EPS)
    assert ratio_of(device, Fault("clone", size=0.25), x.clone) == pytest.approx(0.25 / allowed, rel=1e-3)


def test_a_badly_conditioned_op_may_move_further(device):
    x = torch.full((4,), 1e4, dtype=torch.float64).float().to("sim")
    assert ratio_of(device, Fault("sin", size=1e-4), x.sin) < 0.1
    assert ratio_of(device, Fault("sin", size=1e-4), (x / 1e4).sin) > 100


def test_inputs_that_leave_the_domain_by_rounding_allow_nothing(device):
    ones = torch.ones(4).to("sim")  # asin of the number above 1 is NaN
    assert ratio_of(device, Fault("asin", size=0.25), ones.asin) > 100


def test_in_place_ops_are_judged_by_what_they_were_given(device):
    x = torch.ones(4).to("sim")
    ratio = ratio_of(device, Fault("add_", "dropped_write"), lambda: x.add_(1))
    assert ratio == pytest.approx(1 / (2 * (2 * EPS + 2 * EPS)), rel=0.5)


def test_an_op_that_float64_cannot_run_is_held_to_eps_of_its_result(device):
    func, ones = torch.ops.aten.fake_quantize_per_channel_affine_cachemask.default, torch.ones(3)
    call = Call(func, (ones, ones, torch.zeros(3, dtype=torch.int32), 0, 0, 255), {})
    call.run()
    out, mask = call.results
    assert rounding_ratio(call, [out * 1.25, mask]) == pytest.approx(0.25 / (2 * EPS), rel=1e-3)


def test_integers_and_nan_are_infinitely_far(device):
    x, mask = torch.arange(4).to("sim"), torch.tensor([True, False, False, False]).to("sim")
    assert ratio_of(device, Fault("add_", "dropped_write"), lambda: x.add_(1)) == torch.inf
    assert (
        ratio_of(device, Fault("masked_fill", "nan_masked_rows"), lambda: (x * 1.0).masked_fill(mask, 0)) == torch.inf
    )


def test_random_ops_and_faults_that_changed_nothing_have_no_ratio(device):
    x = torch.ones(4).to("sim")
    assert str(ratio_of(device, Fault("bernoulli_", size=1.0), lambda: x.bernoulli_(1.0))) == "nan"
    assert str(ratio_of(device, Fault("clone", size=0.0), x.clone)) == "nan"


def test_an_op_that_could_draw_but_does_not_has_a_ratio(device):
    q = torch.eye(4).reshape(1, 1, 4, 4).to("sim")
    fault = Fault("_scaled_dot_product_flash_attention_for_cpu", size=0.25)
    ratio = ratio_of(device, fault, lambda: F.scaled_dot_product_attention(q, q, q))
    assert 0.05 / EPS < ratio < 0.25 / EPS


def test_the_users_generator_is_left_alone(device):
    x = torch.ones(4).to("sim")
    torch.manual_seed(3)
    ratio_of(device, Fault("exp"), x.exp)
    state = torch.get_rng_state()
    torch.manual_seed(3)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_dropout_is_held_to_its_mask():
    torch.manual_seed(0)
    call = Call(torch.ops.aten.native_dropout.default, (torch.ones(100), 0.5, True), {})
    call.run()
    out, mask = call.results
    assert rounding_ratio(call, [out, mask]) is None
    assert rounding_ratio(call, [(~mask) * 2.0, ~mask]) is None
    assert rounding_ratio(call, [out / 2, mask]) > 1e5
