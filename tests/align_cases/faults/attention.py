"""Faults within attention: scale, masks, heads, precision of the softmax."""

import torch
from torch import Tensor, nn

from tests.align_cases.faults.fault import planted


@planted("gpt2_linear", "scale", left="transformer.h.1.attn", right="stack.1.mix")
def scores_over_the_head_size(right: nn.Module, left: nn.Module) -> None:
    """Scores of layer 1 are divided by the head size, where its root is right."""
    right.stack[1].mix.divisor **= 2


@planted("llama_complex", "scale", left="model.layers.2.self_attn", right="layers.2.attention")
def scores_over_the_width(right: nn.Module, left: nn.Module) -> None:
    """Fused attention of layer 2 divides by the root of the width, where that of the head size is right."""
    attention = right.layers[2].attention
    attention.scale = (attention.heads * attention.head_dim) ** -0.5


@planted("attention_sdpa", "scale", left="model.layers.1.self_attn", right="model.layers.1.self_attn")
def scores_without_a_root(right: nn.Module, left: nn.Module) -> None:
    """Fused attention of layer 1, in transformers' own module, divides by the head size."""
    right.model.layers[1].self_attn.scaling **= 2


@planted("llama_plain", "repeated_heads", left="model.layers.1.self_attn", right="blocks.1.attend")
def heads_in_turn(right: nn.Module, left: nn.Module) -> None:
    """Key/value heads of layer 1 are repeated as 0, 1, 0, 1, where 0, 0, 1, 1 is right."""
    attend = right.blocks[1].attend
    attend.repeated = lambda x: x.repeat(1, 1, attend.count, 1)


@planted("mixtral_dense", "repeated_heads", left="model.layers.0.self_attn", right="blocks.0.attend")
def heads_in_turn_before_experts(right: nn.Module, left: nn.Module) -> None:
    """The same in layer 0, written with cat."""
    attend = right.blocks[0].attend
    attend.repeated = lambda x: torch.cat([x] * attend.count, 2)


@planted("llama_plain", "mask_shifted", left="model", right=".")
def mask_shows_the_next(right: nn.Module, left: nn.Module) -> None:
    """The mask of the model shows each token the next one."""
    right.diagonal = 2


# The left one has one mask for all layers; the right one makes its own in each.
@planted("gpt2_linear", "mask_shifted", left="transformer transformer.h.2.attn", right="stack.2.mix")
def mask_of_a_layer_shows_the_next(right: nn.Module, left: nn.Module) -> None:
    """The mask of layer 2 shows each token the next one."""
    right.stack[2].mix.diagonal = 1


@planted("bert_own", "mask_inverted", left=".", right=".")
def padding_alone_is_seen(right: nn.Module, left: nn.Module) -> None:
    """Padding is seen and words are hidden."""
    right.padding = lambda attention_mask: attention_mask != 0


@planted("gpt2_linear", "mask_inverted", left="transformer transformer.h.0.attn", right="stack.0.mix")
def the_future_alone_is_seen(right: nn.Module, left: nn.Module) -> None:
    """Layer 0 hides what is allowed."""
    mix = right.stack[0].mix

    def scores(q: Tensor, k: Tensor) -> Tensor:
        allowed = torch.ones(q.shape[2], k.shape[2]).tril() > 0
        return (q / mix.divisor @ k.transpose(-2, -1)).masked_fill(allowed, torch.finfo(q.dtype).min)

    mix.scores = scores


@planted("gpt2_linear", "missing_mask", left="transformer transformer.h.1.attn", right="stack.1.mix")
def nothing_is_hidden(right: nn.Module, left: nn.Module) -> None:
    """Layer 1 has no mask."""
    mix = right.stack[1].mix
    mix.scores = lambda q, k: q / mix.divisor @ k.transpose(-2, -1)


@planted("llama_plain", "accumulation_dtype", left="model.layers.1.self_attn", right="blocks.1.attend")
def softmax_in_bfloat16(right: nn.Module, left: nn.Module) -> None:
    """The softmax of layer 1 is computed in bfloat16."""
    right.blocks[1].attend.weights = lambda scores: scores.bfloat16().softmax(-1).float()


@planted("phi3_split", "accumulation_dtype", left="model.layers.2.self_attn", right="blocks.2.attend")
def softmax_in_float16(right: nn.Module, left: nn.Module) -> None:
    """The softmax of layer 2 is computed in float16."""
    right.blocks[2].attend.weights = lambda scores: scores.half().softmax(-1).float()


@planted("llama_plain", "permuted_heads", left="model.layers.1.self_attn.o_proj", right="blocks.1.attend")
def heads_from_the_last(right: nn.Module, left: nn.Module) -> None:
    """Heads of layer 1 come in front of the output projection in the other order."""
    right.blocks[1].attend.joined = lambda mixed: mixed.flip(2).flatten(2)


@planted(
    "phi3_split",
    "permuted_heads",
    left="model.layers.0.self_attn.o_proj",
    right="blocks.0.attend.wo",
    also="transposed",
)
def channels_before_heads(right: nn.Module, left: nn.Module) -> None:
    """Channels of layer 0 come in front of the output projection with the heads inside."""
    right.blocks[0].attend.joined = lambda mixed: mixed.transpose(2, 3).flatten(2)


# The fill is of the root's mask, the first NaN of the softmax that reads it.
@planted("llama_padded", "nan", left="model model.layers.0.self_attn", right=". blocks.0.attend")
def rows_of_minus_infinity(right: nn.Module, left: nn.Module) -> None:
    """Rows in which everything is hidden by -inf have a softmax of NaN."""
    right.fill = float("-inf")
