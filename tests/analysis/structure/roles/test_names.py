"""Roles by names: each version of RWKV as its repository names its parameters, and modules that only sound alike."""

import pytest

from nbkit.analysis.structure.roles.names import Module, role_by_names

C, H, N = 8, 2, 4
MIX = ("key", "value", "receptance")
V4 = {"time_decay": (C,), "time_first": (C,), "time_mix_k": (1, 1, C), "time_mix_v": (1, 1, C), "time_mix_r": (1, 1, C)}
HF4 = {"time_decay": (C,), "time_first": (C,), "time_mix_key": (1, 1, C), "time_mix_receptance": (1, 1, C)}
V50 = {"time_decay": (H,), "time_first": (H,), "time_mix_k": (1, 1, C), "time_mix_v": (1, 1, C)}
V52 = {"time_decay": (H, N), "time_faaaa": (H, N), "time_mix_k": (1, 1, C), "time_mix_g": (1, 1, C)}
V6 = {f"time_maa_{of}": (1, 1, C) for of in "xwkvrg"} | {
    "time_maa_w1": (C, 160),
    "time_maa_w2": (5, 32, C),
    "time_decay": (1, 1, C),
    "time_decay_w1": (C, 64),
    "time_faaaa": (H, N),
}
V7 = {f"x_{of}": (1, 1, C) for of in "rwkvag"} | {"w0": (1, 1, C), "a0": (1, 1, C), "k_k": (1, 1, C), "r_k": (H, N)}
V7["k_a"] = (1, 1, C)


def role(type_=None, name="m", parameters=(), children=()):
    shapes = dict(parameters) if isinstance(parameters, dict) else dict.fromkeys(parameters)
    return role_by_names(Module(type_, name, shapes, set(children)))


@pytest.mark.parametrize(
    ("version", "parameters", "children"),
    [
        ("RWKV-4", V4, (*MIX, "output")),
        ("RWKV-4", HF4, (*MIX, "output")),
        ("RWKV-5", V50, (*MIX, "output", "ln_x")),
        ("RWKV-4", V4, (*MIX, "output", "ln_x")),
        ("RWKV-5", V50, (*MIX, "output")),
        ("RWKV-5", V52, (*MIX, "gate", "output", "ln_x")),
        ("RWKV-6", V6, (*MIX, "gate", "output", "ln_x")),
        ("RWKV-7", V7, (*MIX, "output", "ln_x")),
    ],
)
def test_time_mix_of_each_version(version, parameters, children):
    told = role("RWKV_TimeMix", "att", parameters, children)
    assert told is not None and told[0] == "time_mix"
    assert told[1].startswith(f"{version}: it holds ")


@pytest.mark.parametrize(
    ("version", "parameters", "children"),
    [
        ("RWKV-4 or 5", ("time_mix_k", "time_mix_r"), MIX),
        ("RWKV-4 or 5", ("time_mix_key", "time_mix_receptance"), MIX),
        ("RWKV-6", ("time_maa_k", "time_maa_r"), MIX),
        ("RWKV-7", ("x_k",), ("key", "value")),
    ],
)
def test_channel_mix_of_each_version(version, parameters, children):
    told = role("RWKV_ChannelMix", "ffn", parameters, children)
    assert told is not None and told[0] == "channel_mix"
    assert told[1].startswith(f"{version}: it holds ")


def test_time_mix_of_rwkv_is_no_attention_though_its_class_says_so():
    assert role("RwkvSelfAttention", "attention", HF4, (*MIX, "output"))[0] == "time_mix"


@pytest.mark.parametrize(
    ("type_", "name", "parameters", "children", "expected"),
    [
        ("LlamaAttention", "self_attn", (), ("q_proj",), "attention"),
        (None, "attn", (), ("c_attn", "c_proj"), "attention"),
        ("GPT2MLP", "mlp", (), ("c_fc", "c_proj"), "mlp"),
        (None, "feed_forward", (), ("w1", "w2", "w3"), "mlp"),
        ("LlamaRMSNorm", "norm", {"weight": (C,)}, (), "norm"),
        (None, "post_attention_layernorm", {"weight": (C,)}, (), "norm"),
        ("BatchNorm2d", "0", {"weight": (C,), "bias": (C,)}, (), "norm"),
        ("Embedding", "wte", {"weight": (96, C)}, (), "embedding"),
        ("LlamaRotaryEmbedding", "rotary_emb", (), (), "rotary"),
        ("Linear", "lm_head", {"weight": (96, C)}, (), "head"),
        ("CrossEntropyLoss", "criterion", (), (), "loss"),
    ],
)
def test_parts_of_transformers(type_, name, parameters, children, expected):
    assert role(type_, name, parameters, children)[0] == expected


@pytest.mark.parametrize(
    ("type_", "name", "parameters", "children"),
    [
        ("MambaMixer", "mixer", ("A_log", "D"), ("in_proj", "conv1d", "x_proj", "dt_proj", "out_proj")),
        ("LinearAttention", "attn", (), ("q_proj", "k_proj", "v_proj")),
        ("PreNorm", "0", (), ("norm", "fn")),
        ("Linear", "head_q", {"weight": (C, C)}, ()),
        ("Linear", "key", {"weight": (C, C)}, ()),
        (None, "norm", (), ()),
        ("ModuleList", "layers", (), ("0", "1")),
        ("Block", "0", (), ("n1", "wq", "wk", "wv", "wo", "n2", "w1", "w2", "w3")),
    ],
)
def test_what_names_do_not_tell_stays_open(type_, name, parameters, children):
    assert role(type_, name, parameters, children) is None


@pytest.mark.parametrize(
    ("type_", "name", "parameters", "children", "expected"),
    [
        ("RMSNorm", "m", {"weight": (C,)}, (), ("norm", "its class is RMSNorm")),
        ("RMSNorm", "m", {"weight": (C, C)}, (), None),
        ("BatchNorm1d", "m", {}, (), ("norm", "its class is BatchNorm1d")),
        ("WeightNorm", "m", {"weight": (C,)}, (), None),
        (None, "ln_1", {"weight": (C,), "bias": None}, (), ("norm", "it is called ln_1 and holds weight, bias")),
        (None, "ln_1", {}, (), None),
        ("Block", "ln_1", {"weight": (C,)}, (), None),
        (None, "ln_1", {"weight": (C,)}, ("fc",), None),
        ("Embedding", "m", {"weight": (C, C)}, (), ("embedding", "its class is Embedding")),
        ("Embedding", "m", {"weight": None}, (), ("embedding", "its class is Embedding")),
        ("Embedding", "m", {"weight": (C,)}, (), None),
        ("RotaryEmbedding", "m", {}, (), ("rotary", "its class is RotaryEmbedding")),
        ("Linear", "lm_head", {"weight": (C, C)}, (), ("head", "it is a projection called lm_head")),
        (None, "lm_head", {"weight": None}, (), ("head", "it is a projection called lm_head")),
        (None, "lm_head", {"weight": (C,)}, (), None),
        ("Conv1d", "lm_head", {"weight": (C, C)}, (), None),
        ("Linear", "fc", {"weight": (C, C)}, (), None),
        ("CrossEntropyLoss", "m", {}, (), ("loss", "its class is CrossEntropyLoss")),
        ("BertAttention", "m", {}, ("q",), ("attention", "its class is BertAttention")),
        ("BertAttention", "m", {"w": None}, (), ("attention", "its class is BertAttention")),
        ("BertAttention", "m", {}, (), None),
        ("LinearAttention", "m", {}, ("q",), None),
        ("LlamaMLP", "m", {}, ("fc",), ("mlp", "its class is LlamaMLP")),
        ("LlamaMLP", "m", {"w": None}, (), None),
        (None, "rope", {}, (), ("rotary", "it is called rope")),
        (None, "attn", {}, ("qkv", "proj"), ("attention", "it is called attn and holds proj, qkv")),
        (None, "attn", {"qkv": None}, ("proj",), ("attention", "it is called attn and holds proj, qkv")),
        ("Block", "attn", {}, ("qkv", "proj"), None),
        (None, "mixer", {}, ("qkv", "proj"), None),
        ("Block", "x", {}, ("fc1", "fc2", "act"), ("mlp", "it holds fc1, fc2")),
        (None, "attn", {}, ("fc1", "fc2"), None),
        (None, "x", {}, ("fc1",), None),
    ],
)
def test_roles_with_their_evidence(type_, name, parameters, children, expected):
    assert role(type_, name, parameters, children) == expected


def test_a_time_mix_is_told_by_its_projections_where_an_exporter_has_folded_its_decay():
    left = {name: V4[name] for name in ("time_mix_k", "time_mix_r")}
    expected = ("time_mix", "RWKV: it holds key, output, receptance and value")
    assert role(None, "att", left, (*MIX, "output")) == expected
    assert role(None, "att", {}, (*MIX, "output")) != expected
