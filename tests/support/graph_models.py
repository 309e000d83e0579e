"""Small models with the structure of large ones, exported by torch: what graphs are read from in the tests.

Everything is made once per worker, ONNX files once per run, and only if a test asks for it. Parameters are random and
all different, so that no exporter takes one for another.
"""

import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY
from tests.support.once import once

SIZES = {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2}
ATTENTION = {"intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
LIMITS = {"pad_token_id": None, "bos_token_id": 0, "eos_token_id": 0, "use_cache": False}


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(vocab_size=96, n_positions=32, n_embd=32, n_layer=2, n_head=2, **LIMITS))


def _mistral() -> nn.Module:
    from transformers import MistralConfig, MistralForCausalLM

    return MistralForCausalLM(MistralConfig(**SIZES, **ATTENTION, **LIMITS))


def _qwen2() -> nn.Module:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return Qwen2ForCausalLM(Qwen2Config(**SIZES, **ATTENTION, **LIMITS))


def _mamba() -> nn.Module:
    from transformers import MambaConfig, MambaForCausalLM

    return MambaForCausalLM(MambaConfig(**SIZES, **LIMITS, state_size=4))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "rwkv4": lambda: RWKV4(replace(RWKV4_TINY, layers=6)),
    "llama": lambda: Llama(LLAMA_TINY),
    "gpt2": _gpt2,
    "mistral": _mistral,
    "qwen2": _qwen2,
    "mamba": _mamba,
}


def batch() -> Tensor:
    """Token ids (2, 8), which every model takes."""
    return torch.arange(16).reshape(2, 8)


@cache
def model(name: str) -> nn.Module:
    """The model in eval mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = MODELS[name]().eval()
        for parameter in made.parameters():
            nn.init.normal_(parameter, std=0.02)
    return made


@cache
def exported(name: str) -> ExportedProgram:
    """What torch.export makes of the model."""
    return torch.export.export(model(name), (batch(),))


@cache
def onnx_bytes(name: str) -> bytes:
    """The ONNX file that torch.onnx.export makes of the model, weights included."""

    def made() -> bytes:
        with contextlib.redirect_stdout(io.StringIO()):
            program = torch.onnx.export(exported(name), (), dynamo=True, verbose=False)
        assert program is not None
        return program.model_proto.SerializeToString()

    return once(f"{name}.onnx", made)
