"""Correct models of transformers, with random weights, of families that no test of the repository has."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bench.families.inputs import IDS, Family, Loss, drawn, ids


def of_transformers(name: str, config: str, inputs: Callable[[nn.Module], dict[str, Any]], **options: Any) -> Family:
    """A class of transformers by its name; the loss is its own, else the mean square of its first result."""

    def make() -> tuple[nn.Module, Loss]:
        import transformers

        torch.manual_seed(0)
        model = getattr(transformers, name)(getattr(transformers, config)(**options)).train()

        def loss() -> Tensor:
            torch.manual_seed(1)
            out = model(**inputs(model))
            value = getattr(out, "loss", None)
            if value is None:
                value = next(item for item in out.to_tuple() if item is not None).float().square().mean()
            return value

        return model, loss

    return make


def text(length: int = 17) -> Callable[[nn.Module], dict[str, Any]]:
    """Two texts and themselves as labels."""

    def inputs(model: nn.Module) -> dict[str, Any]:
        tokens = ids(2, length)
        return {"input_ids": tokens, "labels": tokens}

    return inputs


SMALL: dict[str, Any] = {"vocab_size": IDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
MIXED = {**SMALL, "intermediate_size": 48, "num_key_value_heads": 2}
# Without layers left out at random: what a step costs would be a matter of luck.
AUDIO: dict[str, Any] = {
    **SMALL, "intermediate_size": 48, "conv_dim": (16, 16), "conv_kernel": (10, 3), "layerdrop": 0.0
}  # fmt: skip
TRANSFORMERS: dict[str, Family] = {
    "DeepSeek-V3, MLA and experts": of_transformers(
        "DeepseekV3ForCausalLM", "DeepseekV3Config", text(), **{**SMALL, "num_key_value_heads": 4},
        intermediate_size=48, moe_intermediate_size=24, n_routed_experts=4, n_group=2, topk_group=1,
        num_experts_per_tok=2, q_lora_rank=12, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
        first_k_dense_replace=1,
    ),
    "Mixtral, experts": of_transformers("MixtralForCausalLM", "MixtralConfig", text(), **MIXED, num_local_experts=4),
    "Mamba2": of_transformers(
        "Mamba2ForCausalLM", "Mamba2Config", text(), vocab_size=IDS, hidden_size=32, num_hidden_layers=2, num_heads=8,
        head_dim=8, state_size=16, n_groups=2, chunk_size=8,
    ),
    "DeBERTa-v2": of_transformers(
        "DebertaV2ForMaskedLM", "DebertaV2Config", text(), **SMALL, intermediate_size=48, relative_attention=True,
        position_buckets=8, pos_att_type=["p2c", "c2p"],
    ),
    "BigBird, sparse attention": of_transformers(
        "BigBirdForMaskedLM", "BigBirdConfig", text(64), **SMALL, intermediate_size=48, block_size=4,
        num_random_blocks=1, attention_type="block_sparse", max_position_embeddings=80,
    ),
    "T5": of_transformers(
        "T5ForConditionalGeneration", "T5Config", text(), vocab_size=IDS, d_model=32, d_kv=8, d_ff=48, num_layers=2,
        num_heads=4, decoder_start_token_id=0,
    ),
    "Whisper": of_transformers(
        "WhisperForConditionalGeneration", "WhisperConfig",
        lambda model: {"input_features": drawn(2, 20, 60, like=model), "labels": ids(2, 7)},
        vocab_size=IDS, num_mel_bins=20, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=30,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None,
        begin_suppress_tokens=None, apply_spec_augment=False,
    ),
    "wav2vec 2.0 with CTC": of_transformers(
        "Wav2Vec2ForCTC", "Wav2Vec2Config",
        lambda model: {"input_values": drawn(2, 400, like=model), "labels": ids(2, 5)},
        **AUDIO, conv_stride=(5, 2), num_feat_extract_layers=2, num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4, apply_spec_augment=False,
    ),
    "Swin": of_transformers(
        "SwinForImageClassification", "SwinConfig",
        lambda model: {"pixel_values": drawn(2, 3, 32, 32, like=model), "labels": torch.tensor([0, 1])},
        image_size=32, patch_size=2, embed_dim=12, depths=[2, 2], num_heads=[2, 4], window_size=4,
    ),
    "ConvNeXt": of_transformers(
        "ConvNextForImageClassification", "ConvNextConfig",
        lambda model: {"pixel_values": drawn(2, 3, 32, 32, like=model), "labels": torch.tensor([0, 1])},
        hidden_sizes=[8, 16], depths=[1, 2], num_stages=2,
    ),
    "SegFormer": of_transformers(
        "SegformerForSemanticSegmentation", "SegformerConfig",
        lambda model: {"pixel_values": drawn(2, 3, 32, 32, like=model), "labels": torch.randint(2, (2, 32, 32))},
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3],
        strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16,
    ),
    "CLIP": of_transformers(
        "CLIPModel", "CLIPConfig",
        lambda model: {"input_ids": ids(3, 9), "pixel_values": drawn(3, 3, 16, 16, like=model), "return_loss": True},
        text_config={**SMALL, "intermediate_size": 48, "max_position_embeddings": 16, "eos_token_id": 2},
        vision_config={**SMALL, "intermediate_size": 48, "image_size": 16, "patch_size": 4}, projection_dim=16,
    ),
    "Falcon, one key for all queries": of_transformers("FalconForCausalLM", "FalconConfig", text(), **SMALL),
    "BLOOM, ALiBi": of_transformers(
        "BloomForCausalLM", "BloomConfig", text(), vocab_size=IDS, hidden_size=32, n_layer=2, n_head=4,
    ),
    "Gemma 3": of_transformers(
        "Gemma3ForCausalLM", "Gemma3TextConfig", text(), **MIXED, head_dim=8, sliding_window=8, layer_types=None,
    ),
}  # fmt: skip
