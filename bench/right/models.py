"""Training steps of models of transformers, from small configurations with random weights."""

from collections.abc import Callable
from typing import Any

import torch

from bench.right.registry import Step, right, trained

LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
SMALL = {**LAYERS, "vocab_size": 97}
ONE_KEY = {**SMALL, "num_key_value_heads": 1}
IMAGE = {**LAYERS, "image_size": 16, "patch_size": 4}
EXPERTS = {"num_experts": 4, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16}
DISTILBERT = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "vocab_size": 97}
HEADS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 97}
OPT = {**HEADS, "ffn_dim": 64, "word_embed_proj_dim": 32, "max_position_embeddings": 32}
XLNET = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64, "vocab_size": 97}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 97, "n_positions": 32}
BART = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 97,
}  # fmt: skip
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic", "size": 32}
Row = tuple[str, str, str, str, dict[str, Any]]


def model_of(config: str, model: str, **settings: Any) -> Any:
    import transformers

    return getattr(transformers, model)(getattr(transformers, config)(**settings)).train()


def text(kind: str, config: str, model: str, **settings: Any) -> Step:
    """A language model that predicts the next token, or hidden ones, of random text."""
    ids = torch.randint(3, 97, (4, 12))
    return trained(model_of(config, model, **settings), lambda m: m(input_ids=ids, labels=ids).loss, kind)


def image(kind: str, config: str, model: str, size: int = 16, **settings: Any) -> Step:
    """A classifier of random images."""
    made = model_of(config, model, num_labels=5, **settings)
    labels = torch.randint(0, 5, (4,))

    def loss(m: Any) -> torch.Tensor:
        dtype = next(made.parameters()).dtype
        return m(pixel_values=torch.randn(4, 3, size, size, dtype=dtype), labels=labels).loss

    return trained(made, loss, kind)


TEXTS: tuple[Row, ...] = (
    ("DistilBERT", "float32", "DistilBertConfig", "DistilBertForMaskedLM", DISTILBERT),
    ("ALBERT, shared layers", "bfloat16", "AlbertConfig", "AlbertForMaskedLM", {**SMALL, "embedding_size": 16}),
    ("GPT-NeoX, parallel branches", "autocast", "GPTNeoXConfig", "GPTNeoXForCausalLM", SMALL),
    ("OPT", "float32", "OPTConfig", "OPTForCausalLM", OPT),
    ("Qwen2-MoE", "float32", "Qwen2MoeConfig", "Qwen2MoeForCausalLM", {**ONE_KEY, **EXPERTS}),
    ("OLMo 2, norms behind", "bfloat16", "Olmo2Config", "Olmo2ForCausalLM", ONE_KEY),
    ("Phi, partial rotary", "compiled", "PhiConfig", "PhiForCausalLM", SMALL),
    ("XLNet", "float32", "XLNetConfig", "XLNetLMHeadModel", XLNET),
    ("Cohere, logits scaled", "autocast", "CohereConfig", "CohereForCausalLM", ONE_KEY),
    ("GPT-2, tied", "compiled", "GPT2Config", "GPT2LMHeadModel", GPT2),
    ("BART, encoder and decoder", "float32", "BartConfig", "BartForConditionalGeneration", BART),
)
IMAGES: tuple[Row, ...] = (
    ("ViT", "autocast", "ViTConfig", "ViTForImageClassification", IMAGE),
    ("BEiT, relative positions", "float32", "BeitConfig", "BeitForImageClassification", IMAGE),
    ("ResNet", "bfloat16", "ResNetConfig", "ResNetForImageClassification", RESNET),
    (
        "MobileNetV2", "float32", "MobileNetV2Config", "MobileNetV2ForImageClassification",
        {"depth_multiplier": 0.25, "image_size": 64, "size": 64},
    ),
)  # fmt: skip


def _register(make: Callable[..., Step], rows: tuple[Row, ...]) -> None:
    for name, kind, config, model, settings in rows:
        right(f"{name}, {kind}")(lambda make=make, row=(kind, config, model), settings=settings: make(*row, **settings))


_register(text, TEXTS)
_register(image, IMAGES)
