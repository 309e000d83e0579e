"""Builds small models of transformers' families beside the FLOPs that follow from their sizes, by hand."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

BATCH, TOKENS, WIDTH, HEADS, HIDDEN, WORDS, LAYERS = 2, 6, 16, 4, 24, 50, 2
ROWS, HEAD = BATCH * TOKENS, WIDTH // HEADS
SIZES = {"vocab_size": WORDS, "hidden_size": WIDTH, "num_hidden_layers": LAYERS}
ATTENTION = {"num_attention_heads": HEADS, "intermediate_size": HIDDEN}
LIMITS = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}


class Flops(NamedTuple):
    """Holds 2 x multiply-adds of the forward and of the backward pass."""

    forward: int
    backward: int

    def __add__(self, other: Any) -> "Flops":
        return Flops(self.forward + other.forward, self.backward + other.backward)

    def __mul__(self, times: Any) -> "Flops":
        return Flops(self.forward * times, self.backward * times)


class Family(NamedTuple):
    """Holds a model, what it takes, and its FLOPs by hand."""

    make: Callable[[], nn.Module]
    flops: Flops
    inputs: Callable[[], dict[str, Tensor]] = lambda: {"input_ids": torch.ones(BATCH, TOKENS, dtype=torch.long)}


def product(count: int) -> Flops:
    """Returns so many multiply-adds, and in the backward pass those of two gradients."""
    return Flops(2 * count, 4 * count)


def linear(rows: int, *sides: tuple[int, int]) -> Flops:
    return product(sum(rows * taken * given for taken, given in sides))


def attention(batch: int, heads: int, queries: int, keys: int, width: int) -> Flops:
    """Returns scores and mixed values as two products."""
    return product(2 * batch * heads * queries * keys * width)


def fused_attention(batch: int, heads: int, queries: int, keys: int, width: int) -> Flops:
    """Returns the same where the backward pass makes the scores again: five products for two."""
    forward = attention(batch, heads, queries, keys, width).forward
    return Flops(forward, forward * 5 // 2)


def made(model: str, config: str, **sizes: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import transformers

        return getattr(transformers, model)(getattr(transformers, config)(**sizes))

    return make


SELF = fused_attention(BATCH, HEADS, TOKENS, TOKENS, HEAD)
TWO_PRODUCTS = attention(BATCH, HEADS, TOKENS, TOKENS, HEAD)
SQUARE, OVER, BACK = (WIDTH, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH)
GROUPED = (WIDTH, WIDTH // 2)  # two heads of keys and values for four of queries
TO_WORDS = linear(ROWS, (WIDTH, WORDS))
GATED_LAYER = linear(ROWS, SQUARE, GROUPED, GROUPED, SQUARE, OVER, OVER, BACK) + SELF
FOUR = 4 * WIDTH

PATCHES, IMAGE_TOKENS = 16, 17
PIXELS = 3 * 4 * 4 * WIDTH * PATCHES * BATCH
IMAGES = {"pixel_values": torch.ones(BATCH, 3, 16, 16)}
STEM, DOWN = BATCH * 64 * 8 * 3 * 4, BATCH * 16 * 16 * 8 * 4
INNER, STATE, RANK, KERNEL = 32, 4, 1, 4
MAMBA_LAYER = (
    linear(ROWS, (WIDTH, 2 * INNER), (INNER, RANK + 2 * STATE), (RANK, INNER), (INNER, WIDTH))
    + product(BATCH * INNER * KERNEL * (TOKENS + KERNEL - 1))  # its convolution pads both ends
    + product(BATCH * TOKENS * INNER * STATE)
)
EXPERTS, CHOSEN = 4, 2

FAMILIES = {
    "llama": Family(
        made("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, **SIZES, **ATTENTION, **LIMITS),
        GATED_LAYER * LAYERS + TO_WORDS,
    ),
    "mistral": Family(
        made("MistralForCausalLM", "MistralConfig", num_key_value_heads=2, **SIZES, **ATTENTION, **LIMITS),
        GATED_LAYER * LAYERS + TO_WORDS,
    ),
    "qwen2": Family(
        made("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=2, **SIZES, **ATTENTION, **LIMITS),
        GATED_LAYER * LAYERS + TO_WORDS,
    ),
    "mixtral": Family(
        lambda: made(
            "MixtralForCausalLM",
            "MixtralConfig",
            num_key_value_heads=2,
            num_local_experts=EXPERTS,
            num_experts_per_tok=CHOSEN,
            **SIZES,
            **ATTENTION,
            **LIMITS,
        )().bfloat16(),  # torch tells the shape of products by group for no other
        (linear(ROWS, SQUARE, GROUPED, GROUPED, SQUARE, (WIDTH, EXPERTS)) + SELF) * LAYERS
        + linear(ROWS * CHOSEN, OVER, OVER, BACK) * LAYERS
        + TO_WORDS,
    ),
    "gpt2": Family(  # with dropout, attention is two products
        made("GPT2LMHeadModel", "GPT2Config", vocab_size=WORDS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, **LIMITS),
        (linear(ROWS, (WIDTH, 3 * WIDTH), SQUARE, (WIDTH, FOUR), (FOUR, WIDTH)) + TWO_PRODUCTS) * LAYERS + TO_WORDS,
    ),
    "bert": Family(
        made("BertForMaskedLM", "BertConfig", **SIZES, **ATTENTION),
        (linear(ROWS, SQUARE, SQUARE, SQUARE, SQUARE, OVER, BACK) + TWO_PRODUCTS) * LAYERS
        + linear(ROWS, SQUARE)
        + TO_WORDS,
    ),
    "t5": Family(
        made(
            "T5ForConditionalGeneration",
            "T5Config",
            vocab_size=WORDS,
            d_model=WIDTH,
            d_kv=HEAD,
            d_ff=HIDDEN,
            num_layers=LAYERS,
            num_heads=HEADS,
            decoder_start_token_id=0,
            pad_token_id=0,
        ),
        (linear(ROWS, *[SQUARE] * 4, OVER, BACK) + TWO_PRODUCTS) * LAYERS
        + (linear(ROWS, *[SQUARE] * 8, OVER, BACK) + TWO_PRODUCTS * 2) * LAYERS
        + TO_WORDS,
        lambda: dict.fromkeys(("input_ids", "labels"), torch.ones(BATCH, TOKENS, dtype=torch.long)),
    ),
    "gpt_neox": Family(
        made("GPTNeoXForCausalLM", "GPTNeoXConfig", **SIZES, **ATTENTION, **LIMITS),
        (linear(ROWS, (WIDTH, 3 * WIDTH), SQUARE, OVER, BACK) + SELF) * LAYERS + TO_WORDS,
    ),
    "bloom": Family(
        made("BloomForCausalLM", "BloomConfig", vocab_size=WORDS, hidden_size=WIDTH, n_layer=LAYERS, n_head=HEADS),
        (linear(ROWS, (WIDTH, 3 * WIDTH), SQUARE, (WIDTH, FOUR), (FOUR, WIDTH)) + TWO_PRODUCTS) * LAYERS + TO_WORDS,
    ),
    "mamba": Family(
        made("MambaForCausalLM", "MambaConfig", state_size=STATE, **SIZES, **LIMITS),
        MAMBA_LAYER * LAYERS + TO_WORDS,
    ),
    "vit": Family(
        made("ViTForImageClassification", "ViTConfig", image_size=16, patch_size=4, **SIZES, **ATTENTION),
        Flops(2 * PIXELS, 2 * PIXELS)  # pixels need no gradient
        + linear(BATCH * IMAGE_TOKENS, SQUARE, SQUARE, SQUARE, SQUARE, OVER, BACK) * LAYERS
        + fused_attention(BATCH, HEADS, IMAGE_TOKENS, IMAGE_TOKENS, HEAD) * LAYERS
        + linear(BATCH, (WIDTH, 2)),
        lambda: IMAGES,
    ),
    "convnext": Family(
        made(
            "ConvNextForImageClassification",
            "ConvNextConfig",
            hidden_sizes=[8, 16],
            depths=[1, 1],
            num_stages=2,
            image_size=16,
            patch_size=2,
        ),
        Flops(2 * STEM, 2 * STEM)
        + product(BATCH * 64 * 8 * 49)
        + linear(BATCH * 64, (8, 32), (32, 8))
        + product(DOWN)
        + product(BATCH * 16 * 16 * 49)
        + linear(BATCH * 16, (16, 64), (64, 16))
        + linear(BATCH, (16, 2)),
        lambda: IMAGES,
    ),
}
