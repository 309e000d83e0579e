"""Two implementations of one model, whose modules have other names, compared by their values."""

from functools import cache

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from sample_models.llama import LLAMA_TINY
from tests.analysis.values.test_compare_values import of_dtype
from tests.capture.models import MODELS, record
from tests.support.second_llama import Ways, two_llamas

PROJECTIONS = 7 * LLAMA_TINY.num_hidden_layers + 1


def trace_of(model, is_training=False):
    ids = torch.randint(0, 96, (2, 12), generator=torch.Generator().manual_seed(1))

    def step():
        if is_training:
            model(ids[:, :-1], ids[:, 1:]).backward()
        else:
            model(ids)

    return record(step, values="stats")


@cache
def first_trace(is_training=False):
    return trace_of(two_llamas()[0], is_training)


def compared(ways, is_training=False):
    return nbkit.compare_values(first_trace(is_training), trace_of(two_llamas(ways)[1], is_training))


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("is_fused", [False, True])
def test_two_implementations_with_equal_logits_do_not_part(is_fused, is_training):
    found = compared(Ways(is_fused), is_training)
    assert found.attrs["first_divergence"] is None
    assert set(found["error_class"].dropna()) == {"clean"}
    assert found.attrs["notes"][0] == (
        "The two runs have other modules, so ops were aligned by the values that they compute."
    )
    pairs = found[found["action"] == "match"]
    assert set(pairs["evidence"]) == {"values"}
    products = pairs[(pairs["op"] == "aten.mm.default") & (pairs["phase"].isin(["forward", "other"]))]
    # Of queries and keys, computed in another order, one pair is enough.
    assert PROJECTIONS - LLAMA_TINY.num_hidden_layers * 2 <= len(products) <= PROJECTIONS


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("is_fused", [False, True])
@pytest.mark.parametrize(
    ("wrong", "op", "module", "argument"),
    [
        ({"eps": 1e-3}, "aten.add.Tensor", "model.layers.0.input_layernorm", "1e-05 on the left, 0.001 on the right"),
        ({"theta": 5e5}, "aten.pow.Scalar", "model", "10000.0 on the left, 500000.0 on the right"),
    ],
)
def test_a_wrong_constant_is_where_they_part(wrong, op, module, argument, is_fused, is_training):
    first = compared(Ways(is_fused, **wrong), is_training).attrs["first_divergence"]
    assert (first["op"], first["right_op"], first["module"], first["error_class"]) == (op, op, module, "local")
    assert first["message"].endswith(argument)


@pytest.mark.parametrize("wrong", [{"scale": 0.5}, {"repeats_in_turn": True}])
def test_where_they_compute_in_other_ways_the_first_op_of_that_stretch_is_named(wrong):
    found = compared(Ways(False, **wrong))
    first = found.attrs["first_divergence"]
    assert (first["error_class"], first["module"]) == ("local", "model.layers.0.self_attn")
    assert "scaled_dot_product" in first["op"]
    assert first["message"].startswith(
        "what it reads is in both runs, its result in the left run only, and what comes of it differs to the end: the "
        "cause is there or shortly after; in the right run that begins at aten."
    )
    row = int(found.index[found["left_id"] == first["op_id"]][0])
    assert set(found["origin_id"].dropna()) == {row} and (found["error_class"] == "propagated").sum() > 20


def test_another_weight_is_an_input_that_differs():
    first, second = two_llamas()
    with torch.no_grad():
        second.blocks[1].w1.weight.mul_(1.01)
    found = nbkit.compare_values(trace_of(first), trace_of(second)).attrs["first_divergence"]
    assert (found["module"], found["error_class"]) == ("model.layers.1.mlp.gate_proj", "input")
    assert found["message"].startswith("input 1 differs, and no recorded op made it: norm ")


@pytest.mark.parametrize("foreach", [False, True])
def test_steps_of_an_optimizer_agree_whatever_the_order_of_parameters_and_a_rate_is_told(foreach):
    ids = torch.randint(0, 96, (2, 12), generator=torch.Generator().manual_seed(1))

    def trained(model, rate):
        updates = torch.optim.AdamW(model.parameters(), lr=rate, foreach=foreach)

        def step():
            for _ in range(2):
                updates.zero_grad()
                model(ids, ids).backward()
                updates.step()

        return record(step, values="stats")

    left = trained(two_llamas()[0], 1e-3)
    assert nbkit.compare_values(left, trained(two_llamas()[1], 1e-3)).attrs["first_divergence"] is None
    first = nbkit.compare_values(left, trained(two_llamas()[1], 3e-3)).attrs["first_divergence"]
    assert (first["phase"], "mul_" in first["op"]) == ("optimizer", True)  # the weight decay


class Inside(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.inner = model

    def forward(self, *inputs):
        return self.inner(*inputs)


@pytest.mark.parametrize("name", MODELS)
def test_other_dtypes_do_not_part_within_another_module(name, monkeypatch):
    plain = of_dtype(name, torch.float32)
    monkeypatch.setitem(MODELS, name, lambda make=MODELS[name]: Inside(make()))
    for options in ((torch.float32,), (torch.float64,), (torch.bfloat16,), (torch.float32, True)):
        found = nbkit.compare_values(plain, of_dtype(name, *options))
        assert found.attrs["first_divergence"] is None, found.attrs["first_divergence"]
        share = 0.9 if options == (torch.float32,) else 0.3
        assert (found["action"] == "match").sum() > share * found["left_id"].notna().sum()


def test_the_model_of_transformers_agrees_and_its_eps_is_told():
    transformers = pytest.importorskip("transformers")
    first, second = two_llamas()
    names = "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads".split()
    sizes = {name: getattr(LLAMA_TINY, name) for name in names}

    def theirs(eps):
        config = transformers.LlamaConfig(**sizes, rms_norm_eps=eps, attn_implementation="eager", use_cache=False)
        model = transformers.LlamaForCausalLM(config)
        model.load_state_dict(first.state_dict())
        return trace_of(lambda ids: model(ids).logits)

    right = trace_of(second)
    assert nbkit.compare_values(theirs(1e-5), right).attrs["first_divergence"] is None
    found = nbkit.compare_values(theirs(1e-3), right).attrs["first_divergence"]
    assert (found["op"], found["module"]) == ("aten.add.Tensor", "model.layers.0.input_layernorm")
    assert found["message"].endswith("other is 0.001 on the left, 1e-05 on the right")


def test_functions_without_modules_are_aligned_with_a_model():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2)), torch.randn(4, 8)
    (a, b), (c, d) = model[0].parameters(), model[2].parameters()

    def functions(shift):
        return record(lambda: F.linear(F.gelu(F.linear(x, a, b)), c, d + shift), values="stats")

    right = record(lambda: model(x), values="stats")
    assert nbkit.compare_values(functions(0.0), right).attrs["first_divergence"] is None
    assert nbkit.compare_values(functions(0.5), right).attrs["first_divergence"]["op"] == "aten.add.Tensor"
