"""Faults of positions: rotary base and layout, learned positions, what a decoding step reads and writes."""

import torch
from torch import Tensor, nn

from tests.align_cases.faults.fault import planted
from tests.align_cases.ports.own import complex_llama
from tests.align_cases.ports.port import translated


@planted("llama_plain", "rotary_base", left="model.rotary_emb", right=".")
def rotary_base_of_the_model(right: nn.Module, left: nn.Module) -> None:
    """The base is 500,000, where 10,000 is right."""
    right.theta = 500_000.0


# The left one has one table for all layers, so that it stands for what the right one computes in the layer.
@planted("neox_split", "rotary_base", left="gpt_neox.layers.1.attention gpt_neox.rotary_emb", right="blocks.1")
def rotary_base_of_a_layer(right: nn.Module, left: nn.Module) -> None:
    """The base of layer 1 is 500,000."""
    right.blocks[1].theta = 500_000.0


@planted("decode_theirs", "rotary_base", left="model.model.rotary_emb", right="model.model.rotary_emb")
def rotary_base_in_decoding(right: nn.Module, left: nn.Module) -> None:
    """The base of the decoding model is 1,000,000."""
    table = right.model.model.rotary_emb.inv_freq
    table.copy_(1e6 ** -(torch.arange(len(table)) / len(table)))


def neighbors_turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, T, H, D), tables (T, 1, D/2)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


@planted("llama_plain", "rotary_layout", left="model.layers.0.self_attn", right="blocks.0.attend")
def rotary_turns_neighbors(right: nn.Module, left: nn.Module) -> None:
    """Every layer turns channels 2i and 2i + 1, where the weights are for i and i + D/2."""
    for block in right.blocks:
        block.attend.turned = neighbors_turned


SELF = "model.layers.0.self_attn"


@planted(
    "llama_complex",
    "rotary_layout",
    left=f"{SELF} {SELF}.q_proj {SELF}.k_proj",
    right="layers.0.attention layers.0.attention.wq layers.0.attention.wk",
)
def rotary_weights_as_they_were(right: nn.Module, left: nn.Module) -> None:
    """The q and k weights were loaded without the new order of their rows, in every layer."""
    weights = left.state_dict()
    for name, parameter in right.named_parameters():
        if ".wq." in name or ".wk." in name:
            parameter.copy_(weights[translated(name, complex_llama.NAMES)])


@planted("neox_split", "rotary_layout", left="gpt_neox.layers.2.attention", right="blocks.2")
def rotary_of_a_layer_turns_neighbors(right: nn.Module, left: nn.Module) -> None:
    """Layer 2 turns neighbors in the part of a head that has positions."""
    block = right.blocks[2]

    def turn(x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[2])[:, None] * block.theta ** (-torch.arange(0, block.part, 2) / block.part)
        return torch.cat((neighbors_turned(x[..., : block.part], angles.cos(), angles.sin()), x[..., block.part :]), -1)

    block.turn = turn


@planted("gpt2_linear", "position_shifted", left="transformer transformer.wpe", right=". places")
def learned_positions_from_one(right: nn.Module, left: nn.Module) -> None:
    """The first token has position 1."""
    right.first_place = 1


@planted("decode_static", "position_shifted", left="model.layers.1.self_attn", right="blocks.1.attend")
def keys_of_the_step_before(right: nn.Module, left: nn.Module) -> None:
    """In layer 1 a new key is turned for the position before its own."""
    right.blocks[1].attend.key_position = lambda position: max(position - 1, 0)


@planted("decode_static", "position_shifted", left="model.layers.2.self_attn", right="blocks.2.attend")
def cache_written_one_early(right: nn.Module, left: nn.Module) -> None:
    """In layer 2 a new key and value overwrite those of the position before, and its own slot stays zero."""
    right.blocks[2].attend.slot = lambda position: max(position - 1, 0)
