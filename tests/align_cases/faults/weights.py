"""Faults of loading: tied weights, one element, another layer's, transposed, in another order."""

import torch
from torch import nn
from torch.export import ExportedProgram

from tests.align_cases.faults.fault import planted


def other(weight: torch.Tensor) -> torch.Tensor:
    """Returns values of the same size that are not those of the weight."""
    return torch.randn(weight.shape, generator=torch.Generator().manual_seed(9)) * weight.std()


@planted("gpt2_linear", "untied_weight", left="lm_head", right=". unembed", also="other_weights")
def head_has_its_own_weight(right: nn.Module, left: nn.Module) -> None:
    """The head has a weight of its own, where that of the embeddings is right."""
    right.unembed = nn.Linear(*reversed(right.tokens.weight.shape), bias=False).requires_grad_(False)
    right.unembed.weight.copy_(other(right.tokens.weight))
    right.head = lambda x: right.unembed(x)


@planted("gemma_own", "untied_weight", left="lm_head", right=".", also="other_weights")
def head_is_a_parameter_of_the_root(right: nn.Module, left: nn.Module) -> None:
    """The head is a parameter of the model, where the weight of the embeddings is right."""
    right.last_weight = nn.Parameter(other(right.wte.weight), requires_grad=False)
    right.logits = lambda x: x @ right.last_weight.T


@planted("llama_plain", "other_weights", left="model.layers.1.mlp.down_proj", right="blocks.1.feed.w2")
def one_element_of_a_weight(right: nn.Module, left: nn.Module) -> None:
    """One of the 1,536 elements of a weight of layer 1 is another one."""
    right.blocks[1].feed.w2.weight[3, 5] += 0.5


@planted("llama_fused", "other_weights", left="model.layers.1.mlp.down_proj", right="h.1.mlp.down")
def weight_of_the_layer_before(right: nn.Module, left: nn.Module) -> None:
    """A weight of layer 1 is that of layer 0."""
    right.h[1].mlp.down.weight.copy_(right.h[0].mlp.down.weight)


@planted("rwkv_recurrent", "other_weights", left="blocks.1.ffn.key", right="model.blocks.1.ffn.key")
def weight_of_the_recurrent_form(right: nn.Module, left: nn.Module) -> None:
    """The key weight of layer 1's channel mix was initialized anew."""
    weight = right.model.blocks[1].ffn.key.weight
    weight.copy_(other(weight))


@planted(
    "half_precision",
    "scale",
    left="model.layers.1.mlp.up_proj",
    right="model.layers.1.mlp.up_proj",
    also="other_weights",
)
def weight_scaled_under_rounding(right: nn.Module, left: nn.Module) -> None:
    """A weight of layer 1 is 1.5 times what it should be, in bfloat16."""
    right.model.layers[1].mlp.up_proj.weight.mul_(1.5)


@planted(
    "decompositions",
    "other_weights",
    left="model.layers.1.self_attn.q_proj",
    right="model.layers.1.self_attn.q_proj",
)
def weight_of_the_program(right: ExportedProgram, left: nn.Module) -> None:
    """The program holds another query weight in layer 1."""
    weight = right.state_dict["model.layers.1.self_attn.q_proj.weight"]
    weight.data.copy_(other(weight))


@planted("llama_complex", "transposed", left="model.layers.1.self_attn.o_proj", right="layers.1.attention.wo")
def output_weight_transposed(right: nn.Module, left: nn.Module) -> None:
    """The square weight of layer 1's output projection is transposed."""
    weight = right.layers[1].attention.wo.weight
    weight.copy_(weight.T.clone())


@planted("gpt2_linear", "transposed", left="transformer.h.2.attn.c_proj", right="stack.2.mix.out")
def weight_as_conv1d_holds_it(right: nn.Module, left: nn.Module) -> None:
    """The square output weight of layer 2 was loaded as Conv1D holds it."""
    weight = right.stack[2].mix.out.weight
    weight.copy_(weight.T.clone())


SELF = "model.layers.1.self_attn"


@planted(
    "llama_fused",
    "swapped_operands",
    left=f"{SELF} {SELF}.k_proj {SELF}.v_proj",
    right="h.1.attn h.1.attn.qkv",
)
def keys_and_values_swapped(right: nn.Module, left: nn.Module) -> None:
    """Layer 1's projections were put together as q|v|k, where q|k|v is right."""
    attention = right.h[1].attn
    q, k, v = attention.qkv.weight.clone().split(attention.sizes)
    attention.qkv.weight.copy_(torch.cat((q, v, k)))


NEOX = "gpt_neox.layers.1.attention"


@planted(
    "neox_split",
    "permuted_heads",
    left=f"{NEOX} {NEOX}.query_key_value",
    right="blocks.1 blocks.1.q blocks.1.k blocks.1.v",
    also="other_weights swapped_operands",
)
def thirds_for_heads(right: nn.Module, left: nn.Module) -> None:
    """Layer 1's fused projection was cut into thirds, where q, k and v of each head follow each other."""
    fused, block = left.gpt_neox.layers[1].attention.query_key_value, right.blocks[1]
    for index, linear in enumerate((block.q, block.k, block.v)):
        linear.weight.copy_(fused.weight.chunk(3)[index])
        linear.bias.copy_(fused.bias.chunk(3)[index])
