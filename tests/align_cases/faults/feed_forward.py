"""Faults of feed-forward networks, biases, residuals and embeddings."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.align_cases.faults.fault import planted


@planted(
    "phi3_split",
    "swapped_operands",
    left="model.layers.1.mlp model.layers.1.mlp.gate_up_proj model.layers.1.mlp.activation_fn",
    right="blocks.1.feed blocks.1.feed.w1 blocks.1.feed.w3",
)
def gate_and_up_weights_swapped(right: nn.Module, left: nn.Module) -> None:
    """The halves of gate|up of layer 1 were loaded as up and gate."""
    feed = right.blocks[1].feed
    gate, up = feed.w1.weight.clone(), feed.w3.weight.clone()
    feed.w1.weight.copy_(up)
    feed.w3.weight.copy_(gate)


@planted("llama_fused", "swapped_operands", left="model.layers.0.mlp", right="h.0.mlp")
def gate_and_up_swapped(right: nn.Module, left: nn.Module) -> None:
    """Layer 0 takes the halves of gate|up as up and gate."""
    mlp = right.h[0].mlp
    mlp.halves = lambda h: tuple(reversed(mlp.gate_up(h).chunk(2, -1)))


@planted("gpt2_linear", "activation", left="transformer.h.1.mlp transformer.h.1.mlp.act", right="stack.1.net")
def gelu_exact_for_tanh(right: nn.Module, left: nn.Module) -> None:
    """Layer 1 has the exact GELU, where its approximation by tanh is right."""
    right.stack[1].net.approximate = "none"


@planted(
    "bert_own",
    "activation",
    left="encoder.layer.0.intermediate encoder.layer.0.intermediate.intermediate_act_fn",
    right="stack.0",
)
def gelu_tanh_for_exact(right: nn.Module, left: nn.Module) -> None:
    """Layer 0 has the approximation of GELU by tanh, where the exact one is right."""
    right.stack[0].activated = lambda x: F.gelu(x, approximate="tanh")


@planted("llama_plain", "activation", left="model.layers.2.mlp model.layers.2.mlp.act_fn", right="blocks.2.feed")
def gelu_for_silu(right: nn.Module, left: nn.Module) -> None:
    """Layer 2 has GELU, where SiLU is right."""
    right.blocks[2].feed.activated = F.gelu


@planted("gpt2_linear", "missing_bias", left="transformer.h.1.mlp.c_fc", right="stack.1.net.up")
def bias_of_a_network_missing(right: nn.Module, left: nn.Module) -> None:
    """The first linear layer of layer 1's network has no bias."""
    right.stack[1].net.up.bias = None


@planted("neox_split", "missing_bias", left="gpt_neox.layers.1.attention.query_key_value", right="blocks.1.v")
def bias_of_values_missing(right: nn.Module, left: nn.Module) -> None:
    """The values of layer 1 have no bias; on the left it is a part of the fused projection's."""
    right.blocks[1].v.bias = None


@planted("bert_own", "missing_bias", left="encoder.layer.1.attention.output.dense", right="stack.1.o")
def bias_of_the_output_zero(right: nn.Module, left: nn.Module) -> None:
    """The bias of layer 1's output projection is there and was not loaded: it is zero."""
    right.stack[1].o.bias.zero_()


@planted("mixtral_dense", "scale", left="model.layers.1.mlp model.layers.1.mlp.gate", right="blocks.1.feed")
def shares_do_not_sum_to_one(right: nn.Module, left: nn.Module) -> None:
    """The shares of layer 1's chosen experts are of all experts, and not scaled to sum to 1."""
    feed = right.blocks[1].feed

    def shares(h: Tensor) -> Tensor:
        scores = feed.router(h).softmax(-1)
        return torch.where(scores < scores.topk(feed.chosen, -1).values[..., -1:], 0.0, scores)

    feed.shares = shares


@planted("gemma_own", "scale", left="model.embed_tokens", right="layers.0")
def embeddings_not_scaled(right: nn.Module, left: nn.Module) -> None:
    """Embeddings are not multiplied by the root of the width."""
    right.scale = 1.0


# The next norm reads what attention gave in place of the sum.
@planted(
    "llama_plain",
    "missing_residual",
    left="model.layers.1.post_attention_layernorm",
    right="blocks.1.second",
)
def residual_of_attention_missing(right: nn.Module, left: nn.Module) -> None:
    """Layer 1 does not add its input to what attention gives."""
    block = right.blocks[1]

    def forward(x: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor) -> Tensor:
        x = block.attend(block.first(x), cos, sin, hidden)
        return x + block.feed(block.second(x))

    block.forward = forward


@planted("neox_split", "missing_residual", left="gpt_neox.layers.2", right="ln")
def residual_of_a_layer_missing(right: nn.Module, left: nn.Module) -> None:
    """Layer 2 does not add its input to what attention and the network give."""
    block = right.blocks[2]
    block.forward = lambda x: block.attended(block.ln_a(x)) + block.fed(block.ln_b(x))
