"""The sample models against those of transformers: same random weights, same logits and gradients."""

import pytest
import torch
from torch.testing import assert_close

from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4Config

RWKV_NAMES = [
    ("emb.", "rwkv.embeddings."),
    ("blocks.", "rwkv.blocks."),
    ("ln_out.", "rwkv.ln_out."),
    (".ln0.", ".pre_ln."),
    (".att.", ".attention."),
    (".ffn.", ".feed_forward."),
    ("time_mix_k", "time_mix_key"),
    ("time_mix_v", "time_mix_value"),
    ("time_mix_r", "time_mix_receptance"),
]


def rwkv_name(name):
    """The name in transformers of a parameter of ours."""
    for ours, theirs in RWKV_NAMES:
        name = name.replace(ours, theirs)
    return name


def randomise(model):
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


@pytest.fixture
def rwkv_pair(monkeypatch):
    """Our RWKV-4 and theirs with the same weights, and their name of each parameter."""
    from transformers import RwkvConfig, RwkvForCausalLM
    from transformers.models.rwkv import modeling_rwkv

    # With a GPU at hand, theirs would fetch a CUDA kernel from the network.
    monkeypatch.setattr(modeling_rwkv, "is_torch_cuda_available", lambda: False)
    ours = randomise(RWKV4(RWKV4Config(vocab_size=96, context_length=24, width=32, layers=3, head_qk=0)))
    sizes = {"vocab_size": 96, "context_length": 24, "hidden_size": 32, "num_hidden_layers": 3}
    theirs = RwkvForCausalLM(RwkvConfig(**sizes, rescale_every=0, use_cache=False))
    theirs.load_state_dict({rwkv_name(name): value for name, value in ours.state_dict().items()})
    return ours, theirs, rwkv_name


@pytest.fixture
def llama_pair():
    """Our LLaMA and theirs with the same weights, and their name of each parameter."""
    from transformers import LlamaConfig, LlamaForCausalLM

    ours = randomise(Llama(LLAMA_TINY))
    theirs = LlamaForCausalLM(LlamaConfig(**vars(LLAMA_TINY), attn_implementation="eager", use_cache=False))
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs, str


@pytest.mark.parametrize("pair", ["rwkv_pair", "llama_pair"])
def test_logits_and_gradients_are_those_of_transformers(pair, request):
    ours, theirs, name_in_theirs = request.getfixturevalue(pair)
    ids = torch.randint(96, (2, 24), generator=torch.Generator().manual_seed(1))
    weights = torch.randn(2, 24, 96, generator=torch.Generator().manual_seed(2)) / 24
    actual, expected = ours(ids), theirs(ids).logits
    assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    (actual * weights).sum().backward()
    (expected * weights).sum().backward()
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    assert min(gradient.abs().max() for gradient in gradients.values()) > 1e-2  # so that 1e-5 tells something
    for name, parameter in ours.named_parameters():
        assert_close(parameter.grad, gradients.pop(name_in_theirs(name)), rtol=1e-5, atol=1e-5)
    assert gradients == {}
