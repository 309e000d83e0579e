"""Models of transformers, small and with random weights, whose steps ask for values and sizes of all kinds."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bench.families.inputs import IDS, Family, drawn, ids
from bench.families.transformers_models import AUDIO, MIXED, SMALL, of_transformers, text

Inputs = Callable[[nn.Module], dict[str, Any]]
WIDE: dict[str, Any] = {**SMALL, "intermediate_size": 48}
SIGHT: dict[str, Any] = {**WIDE, "image_size": 32, "patch_size": 8}
del SIGHT["vocab_size"]
CODED: dict[str, Any] = {
    "vocab_size": IDS, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
SERIES: dict[str, Any] = {
    "prediction_length": 6, "context_length": 12, "lags_sequence": [1, 2], "num_time_features": 1, "d_model": 16,
    "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16, "decoder_ffn_dim": 16,
}  # fmt: skip


def pixels(size: int = 32, **others: Tensor) -> Inputs:
    return lambda model: {"pixel_values": drawn(2, 3, size, size, like=model), **others}


def pictures(size: int = 32) -> Inputs:
    return pixels(size, labels=torch.tensor([0, 1]))


def padded(length: int = 16) -> Inputs:
    """Two texts, of which the second one ends early."""

    def inputs(model: nn.Module) -> dict[str, Any]:
        mask = torch.ones(2, length, dtype=torch.long)
        mask[1, length // 2 :] = 0
        return {**text(length)(model), "attention_mask": mask}

    return inputs


def sound(length: int = 800, **others: Any) -> Inputs:
    return lambda model: {"input_values": drawn(2, length, like=model), **others}


def boxes(model: nn.Module) -> dict[str, Any]:
    labels = [{"class_labels": torch.tensor([1, 2]), "boxes": torch.rand(2, 4) / 2 + 0.2} for _ in range(2)]
    return {"pixel_values": drawn(2, 3, 64, 64, like=model), "labels": labels}


def masks(model: nn.Module) -> dict[str, Any]:
    return {
        "pixel_values": drawn(1, 3, 64, 64, like=model),
        "mask_labels": [(torch.rand(2, 64, 64) > 0.5).float()],
        "class_labels": [torch.tensor([0, 1])],
    }


def series(model: nn.Module) -> dict[str, Any]:
    return {
        "past_values": torch.rand(2, 14), "past_time_features": torch.rand(2, 14, 1),
        "past_observed_mask": torch.ones(2, 14), "future_values": torch.rand(2, 6),
        "future_time_features": torch.rand(2, 6, 1),
    }  # fmt: skip


def resnet() -> dict[str, Any]:
    import transformers

    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    return {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None, "backbone_config": config}


def with_backbone(name: str, config: str, inputs: Inputs, **options: Any) -> Family:
    return lambda: of_transformers(name, config, inputs, **resnet(), **options)()


def mask2former() -> Any:
    import transformers

    swin = transformers.SwinConfig(
        image_size=64, patch_size=4, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=2,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )  # fmt: skip
    return of_transformers(
        "Mask2FormerForUniversalSegmentation", "Mask2FormerConfig", masks, backbone_config=swin, feature_size=32,
        mask_feature_size=32, hidden_dim=32, encoder_feedforward_dim=16, encoder_layers=1, decoder_layers=2,
        num_attention_heads=2, dim_feedforward=16, num_queries=6, train_num_points=16,
    )()  # fmt: skip


M = of_transformers
OTHER_MODELS: dict[str, Family] = {
    "Longformer": M("LongformerForMaskedLM", "LongformerConfig", padded(), **WIDE, attention_window=[8, 8]),
    "Nystromformer": M(
        "NystromformerForMaskedLM", "NystromformerConfig", text(16), **WIDE, num_landmarks=4, segment_means_seq_len=16
    ),
    "DETR": with_backbone(
        "DetrForObjectDetection", "DetrConfig", boxes, **{**CODED, "vocab_size": 9}, num_queries=5, num_labels=4
    ),
    "Deformable DETR": with_backbone(
        "DeformableDetrForObjectDetection", "DeformableDetrConfig", boxes, d_model=32, encoder_layers=1,
        decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=16, decoder_ffn_dim=16,
        num_queries=5, num_feature_levels=3, num_labels=4,
    ),
    "Conditional DETR": with_backbone(
        "ConditionalDetrForObjectDetection", "ConditionalDetrConfig", boxes, d_model=32, encoder_layers=1,
        decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=16, decoder_ffn_dim=16,
        num_queries=5, num_labels=4,
    ),
    "Mask2Former": mask2former,
    "YOLOS": M("YolosForObjectDetection", "YolosConfig", boxes, **{**SIGHT, "image_size": [64, 64]},
               num_detection_tokens=5, num_labels=4),
    "VITS": M(
        "VitsModel", "VitsConfig", lambda model: {"input_ids": torch.arange(18).view(2, 9)}, **WIDE, ffn_dim=32,
        layerdrop=0.0, noise_scale_duration=0.0, hidden_dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, duration_predictor_dropout=0.0,  # so that lengths follow from no draw
        spectrogram_bins=9, flow_size=16, upsample_initial_channel=16, upsample_rates=[2, 2],
        upsample_kernel_sizes=[4, 4], wavenet_dilation_rate=1, depth_separable_num_layers=1,
        prior_encoder_num_flows=2, posterior_encoder_num_wavenet_layers=1, duration_predictor_num_flows=2,
        duration_predictor_filter_channels=16, resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1, 3]],
    ),
    "PatchTST, forecast": M(
        "PatchTSTForPrediction", "PatchTSTConfig",
        lambda model: {"past_values": torch.randn(2, 32, 3), "future_values": torch.randn(2, 4, 3)},
        num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, prediction_length=4, d_model=16,
        num_hidden_layers=1, num_attention_heads=2, ffn_dim=16,
    ),
    "PatchTST, masked": M(
        "PatchTSTForPretraining", "PatchTSTConfig", lambda model: {"past_values": torch.randn(2, 32, 3)},
        num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, d_model=16, num_hidden_layers=1,
        num_attention_heads=2, ffn_dim=16, do_mask_input=True,
    ),
    "PatchTSMixer": M(
        "PatchTSMixerForPrediction", "PatchTSMixerConfig",
        lambda model: {"past_values": torch.randn(2, 32, 3), "future_values": torch.randn(2, 4, 3)},
        num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, prediction_length=4, d_model=16,
        num_layers=1,
    ),
    "Informer": M("InformerForPrediction", "InformerConfig", series, **SERIES),
    "Autoformer": M("AutoformerForPrediction", "AutoformerConfig", series, **SERIES, moving_average=3),
    "Time series transformer": M(
        "TimeSeriesTransformerForPrediction", "TimeSeriesTransformerConfig", series, **SERIES
    ),
    "wav2vec 2.0, padded, CTC": M(
        "Wav2Vec2ForCTC", "Wav2Vec2Config",
        lambda model: {
            "input_values": drawn(2, 400, like=model), "labels": ids(2, 5),
            "attention_mask": torch.tensor([[1] * 400, [1] * 300 + [0] * 100]),
        },
        **AUDIO, conv_stride=(5, 2), num_feat_extract_layers=2, num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4, mask_time_prob=0.3, mask_time_length=2,
    ),
    "HuBERT, CTC": M(
        "HubertForCTC", "HubertConfig", sound(400, labels=ids(2, 5)), **AUDIO, conv_stride=(5, 2),
        num_feat_extract_layers=2, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
        mask_time_length=2,
    ),
    "Reformer": M(
        "ReformerModelWithLMHead", "ReformerConfig", text(16), vocab_size=IDS, hidden_size=32, num_attention_heads=2,
        attention_head_size=16, feed_forward_size=32, axial_pos_shape=[4, 4], axial_pos_embds_dim=[16, 16],
        attn_layers=["local", "lsh"], local_attn_chunk_length=4, lsh_attn_chunk_length=4, num_buckets=4,
        is_decoder=True, max_position_embeddings=16, num_hashes=1,
    ),
    "Switch transformers": M(
        "SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", text(), vocab_size=IDS, d_model=32,
        d_kv=8, d_ff=48, num_layers=2, num_heads=4, num_experts=4, decoder_start_token_id=0, expert_capacity=8,
        num_sparse_encoder_layers=1, num_sparse_decoder_layers=1,
    ),
    "Qwen2 MoE": M("Qwen2MoeForCausalLM", "Qwen2MoeConfig", text(), **MIXED, num_experts=4, num_experts_per_tok=2,
                   moe_intermediate_size=16, shared_expert_intermediate_size=16),
    "OLMoE": M("OlmoeForCausalLM", "OlmoeConfig", text(), **MIXED, num_experts=4, num_experts_per_tok=2),
    "Granite MoE": M("GraniteMoeForCausalLM", "GraniteMoeConfig", text(), **MIXED, num_local_experts=4,
                     num_experts_per_tok=2),
    "Jamba": M("JambaForCausalLM", "JambaConfig", text(), **MIXED, num_experts=2, attn_layer_period=2,
               attn_layer_offset=1, use_mamba_kernels=False, mamba_d_state=4),
    "LED": M("LEDForConditionalGeneration", "LEDConfig", text(16), **CODED, attention_window=4,
             max_encoder_position_embeddings=32, max_decoder_position_embeddings=32),
    "BART": M("BartForConditionalGeneration", "BartConfig", text(9), **CODED),
    "Pegasus": M("PegasusForConditionalGeneration", "PegasusConfig", text(9), **CODED),
    "M2M-100": M("M2M100ForConditionalGeneration", "M2M100Config", text(9), **CODED),
    "BigBird-Pegasus": M("BigBirdPegasusForConditionalGeneration", "BigBirdPegasusConfig", text(64), **CODED,
                         block_size=4, num_random_blocks=1),
    "EnCodec": M(
        "EncodecModel", "EncodecConfig", lambda model: {"input_values": drawn(2, 1, 640, like=model)},
        num_filters=4, hidden_size=16, codebook_size=16, codebook_dim=16, upsampling_ratios=[4, 2],
        num_lstm_layers=1, sampling_rate=640,
    ),
    "DAC": M("DacModel", "DacConfig", lambda model: {"input_values": drawn(2, 1, 640, like=model)},
             encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=32, n_codebooks=2,
             codebook_size=16, codebook_dim=4, hidden_size=32),
    "SAM": lambda: sam(),
    "Mamba": M("MambaForCausalLM", "MambaConfig", text(), vocab_size=IDS, hidden_size=32, num_hidden_layers=2,
               state_size=4),
    "RWKV": M("RwkvForCausalLM", "RwkvConfig", text(), vocab_size=IDS, hidden_size=32, num_hidden_layers=2,
              attention_hidden_size=32, intermediate_size=48, context_length=32),
    "Perceiver": M(
        "PerceiverForMaskedLM", "PerceiverConfig", lambda model: {"inputs": ids(2, 16), "labels": ids(2, 16)},
        vocab_size=IDS, num_latents=4, d_latents=16, d_model=16, num_blocks=1, num_self_attends_per_block=1,
        num_self_attention_heads=2, num_cross_attention_heads=2, max_position_embeddings=16, qk_channels=16,
        v_channels=16,
    ),
    "XLNet": M("XLNetLMHeadModel", "XLNetConfig", text(), vocab_size=IDS, d_model=32, n_layer=2, n_head=4, d_inner=48),
    "ALBERT": M("AlbertForMaskedLM", "AlbertConfig", padded(), **WIDE, embedding_size=16),
    "BERT": M("BertForMaskedLM", "BertConfig", lambda model: {**padded()(model), "labels": ids(2, 16)}, **WIDE),
    "GPT-2": M("GPT2LMHeadModel", "GPT2Config", text(16), vocab_size=IDS, n_embd=32, n_layer=2, n_head=4),
    "ELECTRA": M("ElectraForPreTraining", "ElectraConfig",
                 lambda model: {**padded()(model), "labels": torch.randint(2, (2, 16))}, **WIDE, embedding_size=16),
    "Funnel": M("FunnelForMaskedLM", "FunnelConfig", text(16), vocab_size=IDS, block_sizes=[1, 1], d_model=32,
                n_head=4, d_head=8, d_inner=48, num_decoder_layers=1),
    "FNet": M("FNetForMaskedLM", "FNetConfig", text(16), **{**WIDE, "num_attention_heads": 4}),
    "ConvBERT": M("ConvBertForMaskedLM", "ConvBertConfig", padded(), **WIDE, embedding_size=32),
    "MPNet": M("MPNetForMaskedLM", "MPNetConfig", padded(), **WIDE),
    "CANINE": M("CanineForSequenceClassification", "CanineConfig",
                lambda model: {"input_ids": ids(2, 32), "labels": torch.tensor([0, 1])}, **WIDE,
                local_transformer_stride=8, num_hash_buckets=32, max_position_embeddings=64),
    "OPT": M("OPTForCausalLM", "OPTConfig", padded(), vocab_size=IDS, hidden_size=32, num_hidden_layers=2,
             num_attention_heads=4, ffn_dim=48, word_embed_proj_dim=32),
    "GPT-NeoX": M("GPTNeoXForCausalLM", "GPTNeoXConfig", padded(), **WIDE),
    "BEiT": M("BeitForImageClassification", "BeitConfig", pictures(), **SIGHT),
    "ViT-MAE": M("ViTMAEForPreTraining", "ViTMAEConfig", pixels(), **SIGHT, decoder_hidden_size=16,
                 decoder_num_hidden_layers=1, decoder_num_attention_heads=2, decoder_intermediate_size=16),
    "SimMIM": M("ViTForMaskedImageModeling", "ViTConfig", pixels(bool_masked_pos=torch.rand(2, 16) > 0.5), **SIGHT,
                encoder_stride=8),
    "MobileNetV2": M("MobileNetV2ForImageClassification", "MobileNetV2Config", pictures(), image_size=32,
                     depth_multiplier=0.25),
    "RegNet": M("RegNetForImageClassification", "RegNetConfig", pictures(), embedding_size=8,
                hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], groups_width=8),
    "VideoMAE": M(
        "VideoMAEForPreTraining", "VideoMAEConfig",
        lambda model: {
            "pixel_values": drawn(2, 4, 3, 32, 32, like=model),
            "bool_masked_pos": torch.arange(32).remainder(2).bool().expand(2, 32),
        },
        **SIGHT, num_frames=4, tubelet_size=2, decoder_hidden_size=16, decoder_num_hidden_layers=1,
        decoder_num_attention_heads=2, decoder_intermediate_size=16,
    ),
    "LayoutLM": M("LayoutLMForMaskedLM", "LayoutLMConfig", padded(), **WIDE),
}  # fmt: skip


def sam() -> Any:
    def inputs(model: nn.Module) -> dict[str, Any]:
        points = {"input_points": torch.rand(1, 1, 2, 2) * 32, "input_labels": torch.ones(1, 1, 2, dtype=torch.long)}
        return {"pixel_values": drawn(1, 3, 32, 32, like=model), **points}

    vision = {**SIGHT, "output_channels": 16, "window_size": 2, "global_attn_indexes": [1], "mlp_dim": 32}
    return of_transformers(
        "SamModel", "SamConfig", inputs, vision_config=vision,
        prompt_encoder_config={"hidden_size": 16, "image_size": 32, "patch_size": 8, "mask_input_channels": 4},
        mask_decoder_config={"hidden_size": 16, "mlp_dim": 16, "num_attention_heads": 2, "num_hidden_layers": 1,
                             "iou_head_hidden_dim": 16},
    )()  # fmt: skip
