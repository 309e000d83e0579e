"""The ViT sample model: its sizes, torchvision's names, and the logits of transformers' ViT with the same weights."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from sample_models.vit import VIT_B_16, VIT_TINY, ViT

# By the start of a name of ours, that of transformers.
NAMES = {
    "class_token": "vit.embeddings.cls_token",
    "conv_proj": "vit.embeddings.patch_embeddings.projection",
    "encoder.pos_embedding": "vit.embeddings.position_embeddings",
    "encoder.ln": "vit.layernorm",
    "heads.head": "classifier",
}
IN_LAYER = {
    "ln_1": "layernorm_before",
    "self_attention.out_proj": "attention.o_proj",
    "ln_2": "layernorm_after",
    "mlp.0": "mlp.fc1",
    "mlp.3": "mlp.fc2",
}


def theirs(name, value):
    """The names and values in transformers of a parameter of ours: it has q, k and v apart."""
    if not name.startswith("encoder.layers."):
        start = next(start for start in NAMES if name.startswith(start))
        return [(NAMES[start] + name.removeprefix(start), value)]
    index, _, rest = name.removeprefix("encoder.layers.encoder_layer_").partition(".")
    layer = f"vit.layers.{index}."
    if rest.startswith("self_attention.in_proj_"):
        kind = rest.removeprefix("self_attention.in_proj_")
        return [(f"{layer}attention.{of}_proj.{kind}", part) for of, part in zip("qkv", value.chunk(3), strict=True)]
    start = next(start for start in IN_LAYER if rest.startswith(start))
    return [(layer + IN_LAYER[start] + rest.removeprefix(start), value)]


@pytest.mark.parametrize(("config", "count"), [(VIT_B_16, 86_567_656), (VIT_TINY, 81_226)])
def test_its_parameters_are_as_many_as_published(config, count):
    with torch.device("meta"):
        model = ViT(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_logits_and_gradients_are_those_of_transformers():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    ours, x = ViT(VIT_TINY), torch.randn(3, 3, 32, 32)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    shapes = {"image_size": 32, "patch_size": 8, "num_labels": 10, "layer_norm_eps": 1e-6}
    other = transformers.ViTForImageClassification(transformers.ViTConfig(**sizes, **shapes))
    state = ours.state_dict()
    other.load_state_dict(dict(pair for name in state for pair in theirs(name, state[name])))
    mine, expected = ours(x), other(x).logits
    assert_close(mine, expected)
    mine.square().sum().backward()
    expected.square().sum().backward()
    of_theirs = {name: parameter.grad for name, parameter in other.named_parameters()}
    for name, parameter in ours.named_parameters():
        for their_name, part in theirs(name, parameter.grad):
            assert_close(part, of_theirs[their_name])


@pytest.mark.parametrize(
    ("change", "message"), [({"image_size": 33}, "whole number of patches"), ({"hidden_dim": 66}, "into 4 heads")]
)
def test_sizes_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(VIT_TINY, **change)
