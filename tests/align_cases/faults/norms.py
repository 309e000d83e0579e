"""Faults of norms: epsilon, place, gain, precision."""

import torch
from torch import Tensor, nn

from tests.align_cases.faults.fault import planted


def shrunk(model: nn.Module, factor: float) -> None:
    """Scales what is added up along the layers, so that an epsilon matters as much as `factor` is small."""
    for name, parameter in model.named_parameters():
        if any(part in name for part in ("embed_tokens", "table", "o_proj", ".wo.", "down_proj", ".w2.")):
            parameter.mul_(factor)


@planted("llama_plain", "epsilon", left="model.layers.0.input_layernorm", right="blocks.0.first")
def epsilon_of_small_activations(right: nn.Module, left: nn.Module) -> None:
    """1e-6 for 1e-5 in the first norm, on activations whose mean square is 5e-5."""
    shrunk(left, 0.01)
    shrunk(right, 0.01)
    right.blocks[0].first.eps = 1e-6


@planted("llama_plain", "epsilon", left="model.layers.1.post_attention_layernorm", right="blocks.1.second")
def epsilon_of_activations(right: nn.Module, left: nn.Module) -> None:
    """1e-6 for 1e-5 in the second norm of layer 1, on activations whose mean square is 0.05: 1e-4 of the result."""
    shrunk(left, 0.2)
    shrunk(right, 0.2)
    right.blocks[1].second.eps = 1e-6


@planted("gpt2_linear", "epsilon", left="transformer.h.2.ln_2", right="stack.2.before_net")
def epsilon_of_a_layer_norm(right: nn.Module, left: nn.Module) -> None:
    """1e-3 for 1e-5 in the second norm of layer 2."""
    right.stack[2].before_net.eps = 1e-3


@planted(
    "llama_plain",
    "norm_place",
    left="model.layers.1 model.layers.1.input_layernorm",
    right="blocks.1 blocks.1.first",
)
def norm_behind_attention(right: nn.Module, left: nn.Module) -> None:
    """Layer 1 normalizes what attention gave and the residual, where what attention reads is right."""
    block = right.blocks[1]

    def forward(x: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor) -> Tensor:
        x = block.first(x + block.attend(x, cos, sin, hidden))
        return x + block.feed(block.second(x))

    block.forward = forward


ATTENTION = "encoder.layer.1.attention"


@planted(
    "bert_own",
    "norm_place",
    left=f"{ATTENTION} {ATTENTION}.output {ATTENTION}.output.LayerNorm",
    right="stack.1 stack.1.norm_a",
)
def norm_before_attention(right: nn.Module, left: nn.Module) -> None:
    """Layer 1 normalizes what attention reads, where the sum behind it is right."""
    encoder = right.stack[1]

    def forward(x: Tensor, padding: Tensor) -> Tensor:
        x = x + encoder.attended(encoder.norm_a(x), padding)
        return encoder.norm_b(x + encoder.down(encoder.activated(encoder.up(x))))

    encoder.forward = forward


@planted("bert_own", "other_weights", left="encoder.layer.1.output.LayerNorm", right="stack.1.norm_b", also="scale")
def norm_without_gain(right: nn.Module, left: nn.Module) -> None:
    """The gain of the last norm was not loaded and is 1."""
    right.stack[1].norm_b.weight.fill_(1)


@planted("gemma_own", "scale", left="model.layers.1.input_layernorm", right="layers.1.norm_1", also="other_weights")
def gain_without_one(right: nn.Module, left: nn.Module) -> None:
    """A norm of layer 1 multiplies by its gain, where 1 + gain is right."""
    right.layers[1].norm_1.offset = 0


@planted(
    "llama_complex", "accumulation_dtype", left="model.layers.1.post_attention_layernorm", right="layers.1.ffn_norm"
)
def norm_in_bfloat16(right: nn.Module, left: nn.Module) -> None:
    """The second norm of layer 1 is computed in bfloat16."""
    norm = right.layers[1].ffn_norm

    def forward(x: Tensor) -> Tensor:
        half = x.to(torch.bfloat16)
        return (half * torch.rsqrt(half.pow(2).mean(-1, keepdim=True) + norm.eps)).float() * norm.weight

    norm.forward = forward
