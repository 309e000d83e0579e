"""Pairs of two ways to run one model: other attention, other order in time, other precision, other level of ops."""

import copy

import torch

from sample_models.llama import Llama, LlamaConfig
from sample_models.rwkv4 import RWKV4, RWKV4Config
from tests.align_cases.ports import theirs
from tests.align_cases.ports.own import plain_llama
from tests.align_cases.ports.own.stepwise import CachedLlama, Decode, Prefill, Recurrent
from tests.align_cases.ports.port import VOCABULARY, Port, ids, randomised, renamed
from tests.align_cases.ports.theirs import PLAIN
from tests.align_cases.ports.two_implementations import sample_llama


def attention_sdpa() -> Port:
    """Pairs eager with fused attention, both of transformers."""
    left = theirs.llama()
    right = renamed(theirs.llama(attn_implementation="sdpa"), left, {})
    return Port("attention_sdpa", left, right, (ids(),), note="attn_implementation eager against sdpa")


def rwkv_recurrent() -> Port:
    """Pairs the parallel form of the sample RWKV-4 with its recurrent one."""
    config = RWKV4Config(vocab_size=VOCABULARY, context_length=16, width=32, layers=2, head_qk=16)
    left = RWKV4(config)
    decays = [block.att.time_decay.detach().clone() for block in left.blocks]
    randomised(left)
    for block, decay in zip(left.blocks, decays, strict=True):
        block.att.time_decay.copy_(decay)
    return Port("rwkv_recurrent", left, Recurrent(copy.deepcopy(left)), (ids(),), note="a scan against token by token")


def decode_theirs() -> Port:
    """Pairs one forward pass of transformers with decoding by its cache; both return the last token's logits."""
    left = theirs.llama(layers=2)
    right = Decode(copy.deepcopy(left))
    return Port("decode_theirs", Prefill(left), right, (ids(length=6),), note="prefill against 6 steps with a cache")


def decode_static() -> Port:
    """Pairs one forward pass of the sample LLaMA with decoding by another one with a static cache."""
    left = sample_llama()
    right = renamed(CachedLlama(*PLAIN), left, plain_llama.NAMES)
    return Port("decode_static", left, right, (ids(length=6),), note="prefill against a cache that is written to")


def half_precision() -> Port:
    """Pairs a model in float32 with itself in bfloat16."""
    left = randomised(Llama(LlamaConfig(VOCABULARY, 64, 96, 2, 4, 2)))
    right = copy.deepcopy(left).to(torch.bfloat16)
    return Port("half_precision", left, right, (ids(),), tolerance=5e-2, note="float32 against bfloat16")


def decompositions() -> Port:
    """Pairs a module with what torch.export and its decompositions make of it."""
    left = sample_llama()
    right = torch.export.export(copy.deepcopy(left), (ids(),)).run_decompositions()
    return Port("decompositions", left, right, (ids(),), note="module against core aten ops")


def gpt2_decompositions() -> Port:
    """Pairs GPT-2 of transformers with its exported program."""
    left = theirs.gpt2()
    right = torch.export.export(copy.deepcopy(left), (ids(),), strict=False).run_decompositions()
    return Port("gpt2_decompositions", left, right, (ids(),), note="module of transformers against core aten ops")
