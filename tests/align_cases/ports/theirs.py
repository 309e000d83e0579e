"""Models of transformers, tiny, each with weights of its own."""

from typing import Any

from torch import nn

from tests.align_cases.ports.port import VOCABULARY, randomised

WIDTH, INNER, HEADS, KV_HEADS, LAYERS = 32, 48, 4, 2, 3
PLAIN = (VOCABULARY, WIDTH, INNER, HEADS, KV_HEADS, LAYERS)  # what most own models take
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": 32,
}
NO_TOKENS = {"pad_token_id": None, "bos_token_id": 0, "eos_token_id": 0}
EAGER = {"attn_implementation": "eager", "use_cache": False, **NO_TOKENS}


def llama(layers: int = LAYERS, **options: Any) -> nn.Module:
    """Returns a LLaMA."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {**SIZES, "num_hidden_layers": layers, "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-5}
    return randomised(LlamaForCausalLM(LlamaConfig(**{**sizes, **EAGER, **options})))


def phi3() -> nn.Module:
    """Returns a Phi-3, which holds q, k and v, and gate and up, in one weight each."""
    from transformers import Phi3Config, Phi3ForCausalLM

    config = Phi3Config(**SIZES, num_key_value_heads=KV_HEADS, rms_norm_eps=1e-5, **EAGER)
    return randomised(Phi3ForCausalLM(config))


def gpt2() -> nn.Module:
    """Returns a GPT-2, whose linear layers hold their weights transposed."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": 2}
    return randomised(GPT2LMHeadModel(GPT2Config(**sizes, **EAGER)))


def neox() -> nn.Module:
    """Returns a GPT-NeoX: q, k and v of each head follow each other, half of each head is turned."""
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    rope = {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5}
    return randomised(GPTNeoXForCausalLM(GPTNeoXConfig(**SIZES, rope_parameters=rope, **EAGER)))


def bert() -> nn.Module:
    """Returns an encoder without its pooler."""
    from transformers import BertConfig, BertModel

    sizes = {**SIZES, "num_hidden_layers": 2}
    config = BertConfig(**sizes, attn_implementation="eager", pad_token_id=0)
    return randomised(BertModel(config, add_pooling_layer=False))


def mixtral() -> nn.Module:
    """Returns a Mixtral of 4 experts, 2 for each token."""
    from transformers import MixtralConfig, MixtralForCausalLM

    sizes = {**SIZES, "num_hidden_layers": 2, "num_local_experts": 4, "num_key_value_heads": KV_HEADS}
    config = MixtralConfig(**sizes, rope_theta=10_000.0, experts_implementation="eager", **EAGER)
    return randomised(MixtralForCausalLM(config))


def gemma() -> nn.Module:
    """Returns a Gemma with one key/value head."""
    from transformers import GemmaConfig, GemmaForCausalLM

    sizes = {**SIZES, "num_hidden_layers": 2, "num_key_value_heads": 1, "head_dim": WIDTH // HEADS}
    return randomised(GemmaForCausalLM(GemmaConfig(**sizes, **EAGER)))
