"""One weight that differs is named, by however little: the first thing that a user of opalign looks for."""

import copy
from functools import partial

import pytest
import torch
from torch import nn

import nbkit
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY

TOKENS = torch.arange(34).reshape(2, 17)


def convolutions():
    """Weights of norms are ones at the start, and their biases zeros: what they multiply passes as it is."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.GroupNorm(2, 8), nn.GELU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10),
    ).eval()  # fmt: skip


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": 96, "n_embd": 32, "n_layer": 1, "n_head": 4, "bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(**sizes)).eval()


MODELS = {
    "convolutions": (convolutions, partial(torch.rand, 2, 3, 12, 12)),
    "llama": (lambda: Llama(LLAMA_TINY), lambda: TOKENS),
    "rwkv4": (lambda: RWKV4(RWKV4_TINY), lambda: TOKENS),
    "gpt2": (gpt2, lambda: TOKENS),
}
WEIGHTS = {
    "convolutions": ("0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "4.weight", "4.bias", "8.weight"),
    "llama": (
        "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight", "model.layers.1.self_attn.k_proj.weight",
        "model.layers.0.self_attn.v_proj.weight", "model.layers.1.mlp.down_proj.weight", "model.norm.weight",
    ),
    "rwkv4": (
        "blocks.0.ffn.receptance.weight", "blocks.1.ffn.time_mix_k", "blocks.1.att.time_first", "ln_out.weight",
    ),
    "gpt2": (
        "transformer.wpe.weight", "transformer.h.0.ln_1.weight", "transformer.h.0.attn.c_proj.weight",
        "transformer.h.0.ln_2.bias", "transformer.ln_f.weight", "transformer.ln_f.bias",
    ),
}  # fmt: skip
CHANGES = {"times 1.05": lambda x: x.mul_(1.05), "one element": lambda x: x.view(-1)[0].add_(0.01)}


# A bias of zeros times 1.05 is the same.
CASES = [
    (model, weight, change)
    for model, weights in WEIGHTS.items()
    for weight in weights
    for change in CHANGES
    if not (weight.endswith("bias") and change == "times 1.05")
]


@pytest.mark.parametrize(("model", "weight", "change"), CASES)
def test_a_weight_that_differs_is_named(model, weight, change):
    torch.manual_seed(0)
    make, inputs = MODELS[model]
    left = make()
    right = copy.deepcopy(left)
    changed = right.get_parameter(weight)
    with torch.no_grad():
        CHANGES[change](changed)
    trace = nbkit.opalign(left, right, inputs=(inputs(),))
    first = trace.meta["first_divergence"]
    assert (first["left"]["name"], first["right"]["name"]) == (weight, weight)
    assert trace.meta["divergences"] == 1
