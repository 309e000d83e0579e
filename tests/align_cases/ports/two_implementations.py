"""Pairs of two implementations: what transformers has, and what another author wrote."""

import torch
from torch import Tensor

from sample_models.llama import Llama, LlamaConfig
from tests.align_cases.ports import theirs
from tests.align_cases.ports.own import bert, complex_llama, fused_llama, gemma, gpt2, mixtral, neox, plain_llama
from tests.align_cases.ports.port import VOCABULARY, Port, Weights, ids, loaded, randomised, renamed, translated
from tests.align_cases.ports.theirs import HEADS, INNER, KV_HEADS, LAYERS, PLAIN, WIDTH

HEAD = WIDTH // HEADS


def sample_llama() -> Llama:
    """Returns the sample LLaMA in the sizes of the others."""
    return randomised(Llama(LlamaConfig(VOCABULARY, WIDTH, INNER, LAYERS, HEADS, KV_HEADS)))


def llama_sample() -> Port:
    """Pairs the sample LLaMA with that of transformers, whose names are the same."""
    left = sample_llama()
    right = renamed(theirs.llama(), left, {})
    return Port("llama_sample", left, right, (ids(),), note="sdpa with grouped heads against eager attention")


def llama_plain() -> Port:
    """Pairs the LLaMA of transformers with one of einsum, an additive mask of -inf and norms written out."""
    left = theirs.llama()
    right = renamed(plain_llama.PlainLlama(*PLAIN), left, plain_llama.NAMES)
    return Port("llama_plain", left, right, (ids(),), note="half-split rotary, (B, T, H, D) layout")


def llama_complex() -> Port:
    """Pairs the LLaMA of transformers with one that turns neighbors, and orders rows of q and k weights so."""
    left = theirs.llama()

    def value(name: str, weights: Weights) -> Tensor:
        found = weights[translated(name, complex_llama.NAMES)]
        return complex_llama.neighbors(found, HEAD) if ".wq." in name or ".wk." in name else found

    right = loaded(complex_llama.ComplexLlama(*PLAIN), left, value)
    return Port("llama_complex", left, right, (ids(),), note="complex multiplication, F.rms_norm, sdpa, boolean mask")


def llama_fused() -> Port:
    """Pairs the sample LLaMA with one whose projections are fused."""
    left = sample_llama()
    right = renamed(fused_llama.FusedLlama(*PLAIN), left, fused_llama.NAMES, fused_llama.PARTS)
    return Port("llama_fused", left, right, (ids(),), note="split against q|k|v and gate|up, bmm, roll")


def phi3_split() -> Port:
    """Pairs Phi-3 with a LLaMA of split projections."""
    left = theirs.phi3()
    sizes = [WIDTH, KV_HEADS * HEAD, KV_HEADS * HEAD]
    cuts = {"q_proj": ("qkv_proj", sizes, 0), "k_proj": ("qkv_proj", sizes, 1), "v_proj": ("qkv_proj", sizes, 2)}
    cuts |= {"gate_proj": ("gate_up_proj", INNER, 0), "up_proj": ("gate_up_proj", INNER, 1)}

    def value(name: str, weights: Weights) -> Tensor:
        other = translated(name, plain_llama.NAMES)
        part = next((part for part in cuts if part in other), None)
        if part is None:
            return weights[other]
        fused, lengths, index = cuts[part]
        return weights[other.replace(part, fused)].split(lengths)[index]

    right = loaded(plain_llama.PlainLlama(*PLAIN), left, value)
    return Port("phi3_split", left, right, (ids(),), note="q|k|v and gate|up against split")


def llama_padded() -> Port:
    """Pairs two LLaMAs on a batch with padding on the left, where rows of the mask hide everything."""
    left = theirs.llama()
    right = renamed(plain_llama.PlainLlama(*PLAIN), left, plain_llama.NAMES)
    right.fill = torch.finfo(torch.float32).min
    mask = torch.ones_like(ids())
    mask[0, :3] = 0
    inputs = {"input_ids": ids(), "attention_mask": mask}
    return Port("llama_padded", left, right, kwargs=inputs, note="both hide by the smallest float32")


def gpt2_linear() -> Port:
    """Pairs GPT-2 of Conv1D with one of linear layers."""
    left = theirs.gpt2()

    def value(name: str, weights: Weights) -> Tensor:
        found = weights[translated(name, gpt2.NAMES)]
        return found.T if found.dim() == 2 and name.startswith("stack.") else found

    right = loaded(gpt2.OwnGPT2(VOCABULARY, 32, WIDTH, heads=2, layers=LAYERS), left, value)
    return Port(
        "gpt2_linear", left, right, (ids(),), note="transposed weights, tied head, tanh written out against F.gelu"
    )


def neox_split() -> Port:
    """Pairs GPT-NeoX with one of split projections in flat blocks."""
    left = theirs.neox()

    def value(name: str, weights: Weights) -> Tensor:
        *_, projection, last = name.split(".")
        if projection not in "qkv":
            return weights[translated(name, neox.NAMES)]
        stem = translated(name.rpartition(f".{projection}.")[0], neox.NAMES)
        fused = weights[f"{stem}.attention.query_key_value.{last}"]
        return fused.unflatten(0, (HEADS, 3, HEAD))[:, "qkv".index(projection)].flatten(0, 1)

    right = loaded(neox.OwnNeoX(VOCABULARY, WIDTH, INNER, HEADS, HEAD // 2, LAYERS), left, value)
    return Port("neox_split", left, right, (ids(),), note="q, k, v of each head in turn against split; partial rotary")


def bert_own() -> Port:
    """Pairs the encoder of BERT with another one, on a batch with padding on the right."""
    left = theirs.bert()
    right = renamed(bert.OwnBert(VOCABULARY, 32, WIDTH, INNER, HEADS, layers=2), left, bert.NAMES)
    mask, kinds = torch.ones_like(ids()), torch.zeros_like(ids())
    mask[1, 7:], kinds[:, 5:] = 0, 1
    inputs = {"input_ids": ids(), "attention_mask": mask, "token_type_ids": kinds}
    return Port("bert_own", left, right, kwargs=inputs, note="norm after the sums, boolean padding, erf written out")


def mixtral_dense() -> Port:
    """Pairs Mixtral, whose experts see their tokens only, with one whose experts see all."""
    left = theirs.mixtral()

    def value(name: str, weights: Weights) -> Tensor:
        other = translated(name, {**plain_llama.NAMES, "router": "gate"})
        if name.endswith(("gates", "ups")):
            fused = weights[other.replace(".gates", ".experts.gate_up_proj").replace(".ups", ".experts.gate_up_proj")]
            return fused.chunk(2, 1)[name.endswith("ups")].mT
        return weights[other.replace(".downs", ".experts.down_proj")].mT if "downs" in name else weights[other]

    right = loaded(mixtral.OwnMixtral(*PLAIN[:-1], layers=2), left, value)
    return Port("mixtral_dense", left, right, (ids(),), note="sparse against dense experts")


def gemma_own() -> Port:
    """Pairs Gemma with another one whose keys and values are one projection."""
    left = theirs.gemma()
    parts = {"both": ("k_proj", "v_proj")}
    right = renamed(gemma.OwnGemma(VOCABULARY, WIDTH, INNER, HEADS, layers=2), left, gemma.NAMES, parts)
    return Port("gemma_own", left, right, (ids(),), note="scaled embeddings, 1 + gain, one key/value head, tied head")
