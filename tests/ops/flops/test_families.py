"""Tests FLOPs of whole training steps against closed forms of the models' sizes, and how many calls have a rule."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from tests.ops.flops.families import FAMILIES
from tests.ops.flops.nets import NETS
from tests.ops.flops.shares import measured

FEW = ("gpt2", "llama")
# torch counts none of the LSTM's one op, and grouped convolutions backward too high.
AS_TORCH = ("resnet", "unet", "experts", "gru", "transformer", "ranking", "sample llama")
ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
ATTENTION_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


@pytest.mark.parametrize(
    "name", [*NETS, *(name if name in FEW else pytest.param(name, marks=pytest.mark.full) for name in FAMILIES)]
)
def test_a_step_has_the_flops_of_its_closed_form(name):
    step, expected = measured(name)
    assert step.flops == expected
    assert min(step.with_rule, step.as_by_hand) >= 0.98 * step.computing > 0
    assert step.unknown == {}


def forward_flops(query, key, value, *others, out_shape=None, **options):
    return sdpa_flop_count(query, key, value)


def backward_flops(gradient, query, key, value, *others, out_shape=None, **options):
    return sdpa_backward_flop_count(gradient, query, key, value)


@pytest.mark.parametrize("name", AS_TORCH)
def test_closed_forms_are_what_torch_counts_in_a_step_that_runs(name):
    net, inputs = NETS[name].make(), NETS[name].inputs()
    mapping = {ATTENTION: forward_flops, ATTENTION_BACKWARD: backward_flops}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        net(inputs).sum().backward()
    assert counter.get_total_flops() == sum(NETS[name].flops)
